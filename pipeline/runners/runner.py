"""What a runner is: a place where a bundle is run. Files in, JSON lines out.

Every runner keeps to the same four points: answers are passed on one by one as they come, so that
what was there before a connection broke is not lost; a place that falls silent is given up after
`SILENCE_S`; what a run leaves on the device goes, also when the run fails or this process is
killed; a failure has run.py's exit code: 2 for the input, 3 for the machine.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pydantic import JsonValue

from edgebert.targets import Format
from edgebert.targets.errors import EdgebertError, InputError, MachineError

Answer = dict[str, JsonValue]
RUN_PY = Path(__file__).parents[1] / "runtimes" / "run.py"
SILENCE_S = 600.0  # a row of a base-size fp32 model takes a minute under qemu on a busy machine


class LostConnection(MachineError):
    """The connection to a device broke; another attempt may go on where it did."""


@dataclass(frozen=True)
class Job:
    """One run of run.py.

    Attributes:
        action: `rows` (logits of texts), `check` (golden rows), `measure` (latency and memory).
        bundle: its folder.
        format: which of its model files.
        rows: JSON lines file of `rows`.
        outputs: an ONNX file whose outputs are wanted in place of the bundle's logits.
        models: files to measure in turns, in place of the bundle's.
        threads: threads of an inference; None: what the target says.
        tokens, runs, warmups: of `measure`.
    """

    action: Literal["rows", "check", "measure"]
    bundle: Path | None = None
    format: Format | None = None
    rows: Path | None = None
    outputs: Path | None = None
    models: tuple[Path, ...] = ()
    threads: int | None = None
    tokens: int = 32
    runs: int = 50
    warmups: int = 5

    @property
    def arguments(self) -> list[str | Path]:
        """Of run.py's command line; a Path is a file or folder that has to be there."""
        words: list[str | Path] = ["--rows", self.rows] if self.rows else [f"--{self.action}"]
        if self.action == "measure":
            sizes = {"--tokens": self.tokens, "--runs": self.runs, "--warmups": self.warmups}
            words += [text for name, value in sizes.items() for text in (name, str(value))]
        for name, given in (
            ("--bundle", self.bundle),
            ("--format", self.format),
            ("--threads", None if self.threads is None else str(self.threads)),
            ("--outputs", self.outputs),
        ):
            words += [] if given is None else [name, given]
        return words + (["--model", *self.models] if self.models else [])


class Runner(Protocol):
    """A machine that can run run.py."""

    @property
    def name(self) -> str:
        """What reports call it: `local`, `ssh:USER@HOST`, ..."""

    @property
    def emulated(self) -> bool:
        """True where an emulator computes what the processor would, many times slower."""

    def run(self, job: Job) -> Iterator[Answer]:
        """Run a job and yield the objects it prints, as they come.

        Raises:
            InputError, MachineError: as run.py's exit code says.
            LostConnection: the connection broke; what was yielded is good.
        """


def read_answer(line: str, where: str) -> Answer:
    """One line of run.py's output.

    Raises:
        MachineError: it is no JSON object: something else printed on the same stream.
    """
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError) as error:
        cure = "let nothing else print there (a login script, for one)"
        raise MachineError(f"not an answer of run.py: {line[:80]!r}", where, cure) from error


def failure(exit_code: int, stderr: str, where: str) -> EdgebertError:
    """The error that run.py ended with."""
    if exit_code in (-9, 137):
        return MachineError("killed, most likely for lack of memory", where, "free some memory")
    lines = [line.strip() for line in stderr.splitlines() if line.strip()] or ["no message"]
    first = next((i for i, x in enumerate(lines) if x.startswith("run.py: ")), len(lines) - 1)
    message = lines[first].removeprefix("run.py: ")
    kind = {2: InputError, 3: MachineError}.get(exit_code, EdgebertError)
    return kind(message, where, cure_of(lines[first + 1 :]))


def cure_of(lines: Sequence[str]) -> str:
    """The pip command that run.py gives where a package is missing, of the lines that follow."""
    return next((line.partition(": ")[2] for line in lines if "pip install" in line), "")
