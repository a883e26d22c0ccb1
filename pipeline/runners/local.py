"""This machine: run.py in a process of its own, so that what it measures is its own memory."""

import sys

from edgebert.pipeline.runners.process import ProcessRunner


def local_runner() -> ProcessRunner:
    """The runner `local`."""
    # -P: modules beside run.py must not be found in place of those that it imports.
    return ProcessRunner("local", (sys.executable, "-P"))
