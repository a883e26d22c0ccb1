"""What a runner is: a place where run.py runs, files in, JSON lines out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue


class Runner(Protocol):
    """A machine that can run run.py."""

    @property
    def name(self) -> str:
        """What reports call it: `local`, `ssh:USER@HOST`, ..."""

    def run(self, arguments: Sequence[str | Path]) -> list[dict[str, JsonValue]]:
        """Run run.py and return the objects it prints.

        Args:
            arguments: of its command line. A Path is a file or folder of this machine, which the
                runner brings to its own before it passes on where it lies there.

        Raises:
            InputError, MachineError: as run.py's exit code says.
        """
