r"""edgebert beside the tools that people use: docs/benchmarks.md.

    uv run python -m benchmarks.peers.run work [NAME=CHECKPOINT:DATA ...]

The shipped ALBERT is always in the table; others are named, such as the checkpoint of results.py,
or, without data, a model of the catalogue with random weights, for sizes and speeds:

    uv run python -m benchmarks.peers.run work \
        MiniLM-L6=work/on-clinc150/teacher:clinc150 ALBERT-base=albert-base-v2:

Every peer has a folder here: what it needs (requirements.in, and requirements.lock by
`uv pip compile`), and make.py, which leaves its model file as its documentation recommends. An
environment is made of the lock in edgebert's cache on first use (uv has to be there), a file that
is in `work` already is not made again, all files are measured anew. Instructions need
`edgebert doctor --fix qemu`, and are counted once a file.
"""

import argparse
import sys
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.peers.making import OURS, PEERS, PeerError, build, make, version_of
from benchmarks.peers.measuring import (
    CPUS,
    Entry,
    Subject,
    describe,
    measure_all,
    with_instructions,
)
from benchmarks.peers.page import write_page
from edgebert.pipeline.source import find_source
from edgebert.pipeline.stages.load import Load
from edgebert.targets.errors import MachineError

ENTRIES = TypeAdapter(list[Entry])
BASELINE = "onnxruntime"  # leaves fp32.onnx, the plain export, beside its model file
SHIPPED = ("shipped ALBERT", "albert", "clinc150")


def subject_of(word: str, work: Path) -> Subject:
    """The subject of a word NAME=CHECKPOINT:DATA."""
    name, _, rest = word.partition("=")
    model, _, data = rest.rpartition(":")
    return load_subject(name, model, data, work)


def load_subject(name: str, model: str, data: str, work: Path) -> Subject:
    """A subject with its checkpoint as a folder."""
    folder = work / slug(name) / "checkpoint"
    folder.mkdir(parents=True, exist_ok=True)
    return Subject(name, model, data, Load(find_source(model, init_random=not data))(folder))


def slug(name: str) -> str:
    """A name as a folder's."""
    return name.replace(" ", "-")


def make_files(subject: Subject, work: Path, as_is: bool) -> tuple[dict[Path, Entry], list[Entry]]:
    """Entries by model file, and the entries of the makers without one.

    Args:
        subject: what is compressed.
        work: where the files go.
        as_is: make nothing.
    """
    files: dict[Path, Entry] = {}
    failed: list[Entry] = []
    for maker in (*PEERS, OURS):
        out, version = work / slug(subject.name) / maker, version_of(maker)
        try:
            if as_is and not out.exists():
                raise PeerError("not run")
            if maker == OURS:
                made = build(subject.model, subject.data, out)
            else:
                made = make(maker, subject.checkpoint.path, out)
        except PeerError as error:
            entry = Entry(subject=subject.name, maker=maker, version=version, error=str(error))
            failed.append(entry)
            continue
        files |= {file: describe(subject, maker, version, file) for file in made}
    return files, failed


def measured(
    subject: Subject, work: Path, arguments: argparse.Namespace, known: dict[str, Entry]
) -> list[Entry]:
    """All entries of a subject; `known`: earlier ones by the file's hash, for their counts."""
    files, failed = make_files(subject, work, arguments.as_is)
    fp32 = work / slug(subject.name) / BASELINE / "fp32.onnx"
    if not fp32.exists():
        why = f"not measured: {BASELINE} left no fp32.onnx to compare with"
        return [entry.model_copy(update={"error": why}) for entry in files.values()] + failed
    files = {fp32: describe(subject, "fp32", version_of(BASELINE), fp32), **files}
    entries = measure_all(files, fp32, subject, arguments.rounds)
    found = []
    for file, entry in entries.items():
        if entry.sha256 in known:
            counts = known[entry.sha256].instructions
            entry = entry.model_copy(update={"instructions": counts})
        try:
            entry = with_instructions(entry, file, arguments.cpus)
        except MachineError as error:
            print(f"not counted: {error}", file=sys.stderr)
        print(entry.model_dump_json(exclude_defaults=True), file=sys.stderr)
        found.append(entry)
    return found + failed


def main() -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description="edgebert beside the tools that people use")
    parser.add_argument("work", type=Path)
    parser.add_argument("subjects", nargs="*", metavar="NAME=CHECKPOINT:DATA")
    parser.add_argument("--rounds", type=int, default=3, help="processes that measure each file")
    parser.add_argument("--cpus", nargs="*", default=CPUS, help="emulated for the instructions")
    parser.add_argument("--as-is", action="store_true", help="measure what is there, make nothing")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    saved = work / "entries.json"
    entries = ENTRIES.validate_json(saved.read_bytes()) if saved.exists() else []
    if not arguments.page:
        words = [subject_of(word, work) for word in arguments.subjects]
        known = {entry.sha256: entry for entry in entries if entry.sha256}
        entries = []
        for subject in (*words, load_subject(*SHIPPED, work)):
            entries += measured(subject, work, arguments, known)
            saved.write_bytes(ENTRIES.dump_json(entries, indent=1))
    write_page(entries)


if __name__ == "__main__":
    main()
