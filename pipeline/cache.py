"""Results of stages by content: the same stage on the same input with the same versions is not run twice.

A result is a folder that appears by one rename when it is complete, so a build that is killed at any moment leaves
either all of a stage's result or none of it.
"""

import hashlib
import json
import os
from collections.abc import Callable
from functools import cache as memoize
from importlib import metadata
from pathlib import Path

import platformdirs

from edgebert.pipeline.folders import replace_folder

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


@memoize
def library_versions() -> dict[str, str]:
    """Installed version of each library that decides results."""
    return {name: metadata.version(name) for name in LIBRARIES}


@memoize
def source_sha256() -> str:
    """Hash over edgebert's own source, so that a changed stage does not find its old results."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
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
        self._made: set[str] = set()

    def key(self, stage: object, *inputs: str) -> str:
        """Key of a stage on inputs: a stage's `repr` holds all its settings, an input is its hash."""
        parts = [repr(stage), *inputs, json.dumps(library_versions()), source_sha256()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def has(self, key: str) -> bool:
        """Whether the result of that key is complete, and may be used."""
        if not (self.enabled or key in self._made):
            return False
        folder = self.root / key[:32]
        try:
            sizes = json.loads((folder / _DONE).read_text(encoding="utf-8"))
            return all((folder / name).stat().st_size == size for name, size in sizes.items())
        except (OSError, ValueError):
            return False

    def run(self, key: str, make: Callable[[Path], object]) -> Path:
        """The folder with the result of `key`; `make` fills it where it is not there yet.

        Raises:
            MachineError: the disk is full or the cache folder cannot be written.
        """
        folder = self.root / key[:32]
        if self.has(key):
            return folder
        with replace_folder(
            folder, _replaceable, "put the cache elsewhere with EDGEBERT_CACHE"
        ) as fresh:
            make(fresh)
            files = sorted(file for file in fresh.rglob("*") if file.is_file())
            sizes = {str(file.relative_to(fresh)): file.stat().st_size for file in files}
            (fresh / _DONE).write_text(json.dumps(sizes), encoding="utf-8")
        self._made.add(key)
        return folder


def _replaceable(folder: Path) -> None:
    """A folder of the cache may always be replaced: it is there but not complete."""
