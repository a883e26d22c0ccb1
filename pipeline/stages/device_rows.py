"""Run the rows of a validation on another machine, and go on where a broken connection stopped."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from edgebert.calibration.dataset import Row
from edgebert.pipeline.bundle import MANIFEST, Bundle, describe_file
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.runners import Answer, Job, LostConnection, Runner
from edgebert.pipeline.stages.validate import Outputs
from edgebert.targets import Format
from edgebert.targets.errors import InputError, MachineError

ATTEMPTS = 3  # to connect again without a single new row
PAUSE_S = 3.0  # before each
PROGRESS_ROWS = 25  # a line of progress every so many


def describe_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as run.py reads them: the text itself, so that the device's tokenizer is proven too."""
    return [
        {
            "id": index,
            "text": row.text,
            **({"tokens": list(row.tokens)} if row.tokens else {}),
            **({} if row.text_pair is None else {"text_pair": row.text_pair}),
        }
        for index, row in enumerate(rows)
    ]


def run_on(
    runner: Runner,
    bundle: Bundle,
    format: Format,
    rows: Sequence[dict[str, Any]],
    growing: Path,
    progress: Progress | None = None,
) -> Outputs:
    """Logits of rows on a runner.

    Args:
        runner: where.
        bundle: what is run.
        format: which of its model files.
        rows: as `describe_rows` makes them, ids counted from 0.
        growing: file of the answers. Where an earlier call was cut off, those it has are kept and
            only the others are run; it is removed when all are there.
        progress: told of the rows.

    Raises:
        InputError: the bundle was altered on its way, or `growing` is of another bundle.
        MachineError: the machine lacks something, or its connection broke too often; the answers so
            far are kept.
    """
    sha256 = describe_file(bundle.path / MANIFEST).sha256
    head, answers = _read(growing)
    if head and (head["bundle"], head["format"]) != (sha256, format):
        raise InputError("results of another bundle", str(growing), "remove that file")
    attempts = 0
    while len(answers) < len(rows):
        before = len(answers)
        missing = [row for row in rows if row["id"] not in answers]
        try:
            for answer in _ask(runner, bundle, format, missing):
                if "id" not in answer:
                    _check_head(answer, head, sha256, runner)
                    if not head:
                        head = answer
                        _append(growing, answer)
                    continue
                answers[int(str(answer["id"]))] = answer
                _append(growing, answer)
                if progress and len(answers) % PROGRESS_ROWS == 0:
                    progress.note(f"  {runner.name}: {len(answers)} of {len(rows)} rows")
        except LostConnection as error:
            attempts = 1 if len(answers) > before else attempts + 1
            if attempts >= ATTEMPTS:
                kept = f"{len(answers)} of {len(rows)} rows are kept"
                cure = f"{kept}; the same command goes on from there"
                raise MachineError(error.what, error.where, cure) from error
            time.sleep(PAUSE_S)
            continue
        if len(answers) == before:
            raise MachineError("the device left rows out", runner.name, "run it with --debug")
    growing.unlink(missing_ok=True)
    return Outputs(
        [np.asarray(answers[row["id"]]["logits"], np.float32) for row in rows],
        str(head["runtime"]),
        str(head["padding"]),
        f"{head['machine']} ({runner.name})",
    )


def _ask(
    runner: Runner, bundle: Bundle, format: Format, rows: Sequence[dict[str, Any]]
) -> Iterator[Answer]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        yield from runner.run(Job("rows", bundle.path, format, rows=file))


def _check_head(answer: Answer, head: Answer, sha256: str, runner: Runner) -> None:
    """Refuse answers of another bundle, or of another machine than the rows before them."""
    if answer.get("bundle") != sha256:
        raise InputError(
            "the device answers for another bundle than the one that was sent",
            runner.name,
            "run it again; if it stays, copy or build the bundle again",
        )
    if head and answer != head:
        changed = [str(name) for name in head if head[name] != answer.get(name)]
        raise MachineError(
            f"the device changed between two connections ({', '.join(changed)})",
            runner.name,
            "keep to one device, and remove the rows so far with `edgebert doctor --fix cache`",
        )


def _append(file: Path, answer: Answer) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(answer) + "\n")


def _read(file: Path) -> tuple[Answer, dict[int, Answer]]:
    """First line and answers by row of a growing file; a line that was cut short goes."""
    if not file.is_file():
        return {}, {}
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        file.write_bytes(whole)
    try:
        lines = [dict(json.loads(line)) for line in whole.splitlines()]
        return (lines[0], {int(line["id"]): line for line in lines[1:]}) if lines else ({}, {})
    except (ValueError, TypeError, KeyError) as error:
        raise InputError("not a file of answers", str(file), "remove that file") from error
