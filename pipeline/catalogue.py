"""The catalogue: models by the hub's short names, with what is needed to build one at real size."""

import difflib
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from edgebert.targets.errors import InputError

FILE = Path(__file__).with_name("catalogue.toml")


class CatalogueEntry(BaseModel):
    """One model.

    Attributes:
        name: the hub's short name, which users write.
        hub_id: `owner/name` on the hub; empty for the shipped one.
        model_type: the family.
        config: fields of its configuration that differ from the family's defaults in transformers.
        parameters: of the two-label classifier; what layers share counts once.
        license: SPDX name, empty where unknown.
        good_for: one short phrase.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    hub_id: str
    model_type: str
    config: dict[str, Any]
    parameters: int = Field(gt=0)
    license: str = ""
    good_for: str

    @property
    def layers(self) -> int:
        """Depth: how often a layer is applied."""
        names = ("num_hidden_layers", "n_layers", "n_layer")
        return next(int(self.config[name]) for name in names if name in self.config)

    def answers_to(self, name: str) -> bool:
        """True for the entry's name or its hub id."""
        return bool(name) and name in (self.name, self.hub_id)


@cache
def load_catalogue() -> dict[str, CatalogueEntry]:
    """Every entry by name, in the order of the file."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["models"]
    return {name: CatalogueEntry(name=name, **fields) for name, fields in entries.items()}


def has_entry(name: str) -> bool:
    """True for a catalogue name, or the hub id of an entry."""
    return any(entry.answers_to(name) for entry in load_catalogue().values())


def find_entry(name: str) -> CatalogueEntry:
    """An entry by its name or its hub id.

    Raises:
        InputError: no such entry, with the nearest names.
    """
    for entry in load_catalogue().values():
        if entry.answers_to(name):
            return entry
    raise unknown_model(name)


def unknown_model(name: str) -> InputError:
    """The error for a name that is no entry, no folder and no hub id."""
    known = ["albert", *load_catalogue()]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    return InputError(
        f"unknown model '{name}'",
        f"nearest: {', '.join(near)}" if near else "",
        "`edgebert models` lists them; or give a local folder, or a hub id (owner/name)",
    )


def parameter_count(entry: CatalogueEntry, num_labels: int = 2) -> int:
    """Parameters of the entry's classifier, counted on a model without storage."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    config = AutoConfig.for_model(entry.model_type, num_labels=num_labels, **entry.config)
    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())
