"""Where a model comes from: found and hashed without loading it."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from edgebert.pipeline.artifact import sha256_of
from edgebert.pipeline.catalogue import CatalogueEntry, find_entry, has_entry, unknown_model
from edgebert.targets.errors import InputError

SHIPPED = "albert"
SHIPPED_FOLDER = Path(__file__).parent / "models" / SHIPPED
_SUFFIXES = (
    ".json",
    ".safetensors",
    ".bin",
    ".txt",
    ".model",
)  # of the files that a checkpoint is made of


@dataclass(frozen=True)
class Source:
    """A model that was asked for.

    Attributes:
        model: as the user wrote it.
        name: what reports call it.
        folder: where it is; None for one with random weights.
        entry: its catalogue entry, where it has one.
        allow_pickle: whether pytorch_model.bin may be read.
        data: name of the shipped data set that it is evaluated on, empty when there is none.
        license, attribution: of the model, empty where unknown.
    """

    model: str
    name: str
    folder: Path | None
    entry: CatalogueEntry | None = None
    allow_pickle: bool = False
    data: str = ""
    license: str = ""
    attribution: str = ""

    @property
    def random_weights(self) -> bool:
        """True where the weights are made up, so that accuracy means nothing."""
        return self.folder is None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report must say."""
        return (
            "the weights are random: sizes and speeds are real, accuracy means nothing",
        ) * self.random_weights

    @cached_property
    def sha256(self) -> str:
        """Hash over the files of the folder, or over the catalogue entry."""
        if self.folder is None:
            return repr(self.entry)
        files = [
            file for file in self.folder.iterdir() if file.suffix in _SUFFIXES and file.is_file()
        ]
        return sha256_of(*sorted(files))


def find_source(model: str, *, allow_pickle: bool = False, init_random: bool = False) -> Source:
    """Find a model.

    Args:
        model: `albert` (the shipped one), a local folder, a catalogue name, or a hub id.
        allow_pickle: read pytorch_model.bin where there is no model.safetensors.
        init_random: take the catalogue entry at its real size with random weights.

    Raises:
        InputError: unknown name, with the nearest ones.
        MachineError: a hub model that is not at hand and cannot be fetched.
    """
    from edgebert.pipeline.hub import hub_snapshot, is_hub_id

    if init_random:
        entry = find_entry(model)
        return Source(model, entry.name, None, entry)
    if model == SHIPPED:
        about = tomllib.loads((SHIPPED_FOLDER / "model.toml").read_text(encoding="utf-8"))
        return Source(model, SHIPPED, SHIPPED_FOLDER, **about)
    folder = Path(model).expanduser()
    if folder.is_dir():
        return Source(model, folder.resolve().name, folder.resolve(), allow_pickle=allow_pickle)
    if folder.exists():
        raise InputError(
            "a model is a folder, and this is a file", model, "name the folder that holds it"
        )
    if has_entry(model):
        entry = find_entry(model)
        snapshot = hub_snapshot(entry.hub_id, allow_pickle)
        return Source(model, entry.name, snapshot, entry, allow_pickle, license=entry.license)
    if is_hub_id(model):
        return Source(
            model, model.split("/")[1], hub_snapshot(model, allow_pickle), allow_pickle=allow_pickle
        )
    raise unknown_model(model)
