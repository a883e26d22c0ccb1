"""Results of stages by content: the same stage on the same input with the same versions runs once.

A result is a folder that appears by one rename when it is complete, so a build that is killed at
any moment leaves either all of a stage's result or none of it. A result is held to its checksums
before it is used, and builds that want the same one at the same time wait for the first.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache as memoize
from importlib import metadata
from pathlib import Path

import platformdirs

from edgebert import calibration, targets
from edgebert.pipeline.folders import replace_folder
from edgebert.targets.errors import InputError

# The libraries whose version decides what a stage leaves.
LIBRARIES = (
    "ai-edge-litert",
    "ai-edge-quantizer",
    "edgebert",
    "litert-torch",
    "nncf",
    "numpy",
    "onnx",
    "onnxruntime",
    "tokenizers",
    "torch",
    "torchao",
    "transformers",
)
_DONE = "stage.json"
_RESULT = re.compile(r"\.?[0-9a-f]{32}(\.lock|\.jsonl|\.\d+\.(partial|older))?")
_ELSEWHERE = "put the cache elsewhere with EDGEBERT_CACHE"


@memoize
def library_versions() -> dict[str, str]:
    """Installed version of each library that decides results."""
    return {name: metadata.version(name) for name in LIBRARIES}


@memoize
def source_sha256() -> str:
    """Hash over edgebert's own source, so that a changed stage does not find its old results."""
    digest = hashlib.sha256()
    for file_of_package in (__file__, calibration.__file__, targets.__file__):
        root = Path(file_of_package).parent
        for file in sorted([*root.rglob("*.py"), *root.glob("templates/*")]):
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


class Cache:
    """A folder of finished stages.

    Args:
        root: the folder; by default `EDGEBERT_CACHE` or the user's cache folder.
        enabled: False runs every stage anew (and keeps the results for this run).
    """

    def __init__(self, root: Path | None = None, enabled: bool = True) -> None:
        chosen = root or os.environ.get("EDGEBERT_CACHE") or platformdirs.user_cache_dir("edgebert")
        self.root = Path(chosen)
        self.enabled = enabled
        self._whole: set[str] = set()  # keys whose results this object has made or checked

    def key(self, stage: object, *inputs: str) -> str:
        """Key of a stage on inputs: a stage's `repr` has all its settings, an input is its hash."""
        parts = [repr(stage), *inputs, json.dumps(library_versions()), source_sha256()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def has(self, key: str) -> bool:
        """Whether the result of that key is complete and unaltered, and may be used."""
        if key not in self._whole and self.enabled and _is_whole(self.folder(key)):
            self._whole.add(key)
        return key in self._whole

    def folder(self, key: str) -> Path:
        """Where the result of that key is, or will be."""
        return self.root / key[:32]

    def growing(self, key: str) -> Path:
        """A file beside the results that grows line by line and outlives a broken connection."""
        self.root.mkdir(parents=True, exist_ok=True)
        return self.root / f"{key[:32]}.jsonl"

    def run(self, key: str, make: Callable[[Path], object]) -> Path:
        """The folder with the result of `key`; `make` fills it where it is not there yet.

        Raises:
            MachineError: the disk is full.
            InputError: the cache folder cannot be written.
        """
        folder = self.folder(key)
        if self.has(key):
            return folder
        with self._locked(folder.name):
            if self.has(key):  # another build has made it in the meantime
                return folder
            with replace_folder(folder, _replaceable, _ELSEWHERE) as fresh:
                make(fresh)
                (fresh / _DONE).write_text(json.dumps(_checksums(fresh)), encoding="utf-8")
        self._whole.add(key)
        return folder

    def clear(self) -> None:
        """Remove every result, and nothing else that may lie in the folder."""
        for entry in self.root.glob("*") if self.root.exists() else ():
            if _RESULT.fullmatch(entry.name):
                entry.unlink() if entry.is_file() else shutil.rmtree(entry, ignore_errors=True)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Hold the lock of a result; the system releases that of a process that was killed."""
        file = self.root / f".{name}.lock"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            stream = file.open("w")
        except OSError as error:
            what = f"cannot write the cache: {error.strerror}"
            raise InputError(what, str(self.root), _ELSEWHERE) from error
        with stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _replaceable(folder: Path) -> None:
    """A folder of the cache may always be replaced: it is there but not complete."""


def _checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder."""
    sums = {}
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
        sums[str(file.relative_to(folder))] = digest.hexdigest()
    return sums


def _is_whole(folder: Path) -> bool:
    """True where a result is there with all its files as they were made."""
    try:
        made = json.loads((folder / _DONE).read_text(encoding="utf-8"))
        found = _checksums(folder)
    except (OSError, ValueError):
        return False
    found.pop(_DONE)
    return bool(found == made)
