"""The stages of one command, each through the cache."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from edgebert.pipeline.bundle import StageEntry
from edgebert.pipeline.cache import Cache
from edgebert.pipeline.progress import Progress, Report


class StageRuns:
    """Runs stages and remembers their keys for the manifest.

    Args:
        cache: where results are kept.
        progress: where they are reported.
    """

    def __init__(self, cache: Cache, progress: Progress) -> None:
        self.cache, self.progress = cache, progress
        self.entries: list[StageEntry] = []

    def run(
        self, name: str, stage: object, inputs: Sequence[str], make: Callable[[Path], object]
    ) -> Path:
        """The folder of a stage's result, which `make` fills where the cache does not have it.

        Args:
            name: what reports call it.
            stage: its settings.
            inputs: hashes of what it reads.
            make: fills a folder.
        """
        key = self.cache.key(stage, *inputs)
        if self._known(name, key):
            return self.cache.run(key, make)
        with self.progress.stage(name, cached=self.cache.has(key)):
            return self.cache.run(key, make)

    def train(
        self,
        name: str,
        stage: object,
        inputs: Sequence[str],
        make: Callable[[Path, Path, Report], object],
    ) -> Path:
        """As `run`, for a training: `make` also gets a folder to resume from, and a reporter."""
        key = self.cache.key(stage, *inputs)
        self._known(name, key)
        work = self.work_folder(key)
        with self.progress.training(name, cached=self.cache.has(key)) as report:
            folder = self.cache.run(key, lambda out: make(out, work, report))
        shutil.rmtree(work, ignore_errors=True)
        return folder

    def work_folder(self, key: str) -> Path:
        """Where a training that is interrupted keeps what it goes on from."""
        return self.cache.root / "training" / key[:32]

    def _known(self, name: str, key: str) -> bool:
        entry = StageEntry(name=name, key=key)
        known = entry in self.entries
        if not known:
            self.entries.append(entry)
        return known
