"""Share rows out over threads; every runtime here frees the interpreter lock while it computes.

Several workers of one thread each beat one computation of several threads on short rows, and keep
their speed on a busy machine, where the threads of one computation wait for each other at every
operator.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def core_count() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_out(items: Sequence[T], workers: Sequence[Callable[[T], None]]) -> None:
    """Give each item to the first worker that is free; raises what a worker raises."""
    queue = iter(list(items))  # of a list: safe to advance from several threads

    def work(worker: Callable[[T], None]) -> None:
        for item in queue:
            worker(item)

    with ThreadPoolExecutor(len(workers)) as pool:
        for done in [pool.submit(work, worker) for worker in workers]:
            done.result()
