"""A Python on this machine's file system, its own or one that an emulator runs."""

import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from edgebert.pipeline.runners.runner import (
    RUN_PY,
    SILENCE_S,
    Answer,
    Job,
    failure,
    read_answer,
)
from edgebert.targets.errors import MachineError


@dataclass(frozen=True)
class ProcessRunner:
    """Runs edgebert's own copy of run.py: a bundle's may be anybody's.

    Attributes:
        name: as in `Runner`.
        command: what comes before run.py on the command line.
        emulated: as in `Runner`.
        silence_s: seconds without an answer after which it is given up.
    """

    name: str
    command: tuple[str, ...] = field(repr=False)
    emulated: bool = False
    silence_s: float = SILENCE_S

    def run(self, job: Job) -> Iterator[Answer]:
        """As in `Runner.run`."""
        where = f"run.py on {self.name}"
        command = [*self.command, str(RUN_PY), *map(str, job.arguments)]
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8"
            ) as child,
        ):
            assert child.stdout is not None
            try:
                answered = False
                for line in self._lines(child.stdout, where):
                    answered = True
                    yield read_answer(line, where)
                # 1 with an answer is a verdict (`--check`), 1 without one is a traceback.
                if child.wait() != 0 and not (child.returncode == 1 and answered):
                    stderr.seek(0)
                    raise failure(child.returncode, stderr.read(), where)
            finally:
                child.kill()

    def _lines(self, stream: IO[str], where: str) -> Iterator[str]:
        """Lines until the stream ends, each at most `silence_s` after the one before."""
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            for line in stream:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=self.silence_s)
            except queue.Empty:
                what = f"no answer for {self.silence_s:g} s"
                raise MachineError(what, where, "free the machine, or take fewer rows") from None
            if not line:
                return
            yield line
