"""Runs inside the emulated Arm: inferences between marks that the counting plugin sees.

arm64_guest.py FOLDER_OF_RUN_PY MODEL TOKENS RUNS
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import run  # type: ignore[import-not-found]

WARMUPS = 2  # the first inference also plans memory and packs weights


def mark(number: int) -> None:
    """A system call that does nothing; its second argument is the mark."""
    with suppress(OSError):
        os.lseek(-4242, number, 0)


session = run.open_session(Path(sys.argv[2]))
ids = [1] * int(sys.argv[3])
feed, _ = session.feed(ids, [0] * len(ids))  # outside the count: only the runtime's own work is in
for _ in range(WARMUPS):
    session.run(feed)
for number in range(int(sys.argv[4])):
    mark(number)
    session.run(feed)
mark(int(sys.argv[4]))
print(session.runtime)
