"""Where a bundle is run."""

from edgebert.pipeline.runners.runner import Runner
from edgebert.targets.errors import InputError

__all__ = ["Runner", "find_runner"]


def find_runner(name: str) -> Runner:
    """The runner of a name such as `local`.

    Raises:
        InputError: there is no such runner.
    """
    if name == "local":
        from edgebert.pipeline.runners.local import LocalRunner

        return LocalRunner()
    raise InputError(f"unknown runner '{name}'", "--on", "known: local")
