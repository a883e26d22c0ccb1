"""What a user sees while a command works: stages with their times, on standard error only.

The libraries underneath print a great deal to both streams; it goes to a log file, so that standard
output stays the command's own.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO

Report = Callable[[int, int, float], None]  # step, steps in all, loss


class Progress:
    """Reports stages: a spinner on a terminal, one line a stage elsewhere.

    Args:
        stream: where to; None is silent.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.times_s: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, cached: bool = False) -> Iterator[None]:
        """Report one stage; its time is kept in `times_s`."""
        start = time.monotonic()
        with self._spinner(name):
            yield
        self._done(name, time.monotonic() - start, cached)

    @contextmanager
    def training(self, name: str, cached: bool = False) -> Iterator[Report]:
        """Report a training as a stage: a bar on a terminal, one line elsewhere."""
        if self.stream is None or not self.stream.isatty() or cached:
            with self.stage(name, cached):
                yield lambda step, steps, loss: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (
            TextColumn(name),
            BarColumn(),
            TextColumn("step {task.completed}/{task.total}, loss {task.fields[loss]:.3g}"),
            TimeRemainingColumn(),
        )
        start = time.monotonic()
        with Bars(*columns, console=Console(file=self.stream), transient=True) as bars:
            bar = bars.add_task(name, total=None, loss=float("nan"))
            yield lambda step, steps, loss: bars.update(bar, completed=step, total=steps, loss=loss)
        self._done(name, time.monotonic() - start)

    def note(self, line: str) -> None:
        """Print one line."""
        if self.stream is not None:
            print(line, file=self.stream, flush=True)

    def _done(self, name: str, elapsed_s: float, cached: bool = False) -> None:
        self.times_s[name] = elapsed_s
        self.note(f"{name:<44} {'cached' if cached else f'{elapsed_s:.1f} s':>9}")

    @contextmanager
    def _spinner(self, name: str) -> Iterator[None]:
        if self.stream is None or not self.stream.isatty():
            yield
            return
        from rich.console import Console

        with Console(file=self.stream).status(name):
            yield


@contextmanager
def quiet_libraries(keep: bool = False) -> Iterator[TextIO]:
    """Send what libraries print to a log file while the block runs.

    Args:
        keep: leave the streams alone (`--debug`).

    Yields:
        The real standard error.
    """
    if keep:
        yield sys.stderr
        return
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with (
        tempfile.TemporaryFile() as log,
        os.fdopen(os.dup(saved[1]), "w", encoding="utf-8") as stderr,
    ):
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            yield stderr
        except Exception as error:
            error.add_note(_tail(log))
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            for descriptor in saved:
                os.close(descriptor)


def _tail(log: BinaryIO, lines: int = 30) -> str:
    """The last lines that the libraries printed, for who sees the traceback."""
    log.seek(0)
    text = log.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])
