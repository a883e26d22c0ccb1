"""Labeled texts: what a row is, and the three splits of a data set.

A folder may hold `train`, `dev` and `test`; calibration draws from `train`, choices are made on
`dev`, drift is judged on `test`, and never the other way round.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
# A name or an id, a number (regression), names (several labels), or one tag a token.
Label = str | int | float | tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One example.

    Attributes:
        text: the text, or the first of a pair.
        label: the label as the file gives it, None where there is none.
        text_pair: the second text of a pair.
        tokens: the words of a token classification row, whose `label` has one tag each.
        language: the language the file gives, empty when it gives none.
        where: file and line it was read from, for messages; no part of what a row is.
    """

    text: str
    label: Label | None = None
    text_pair: str | None = None
    tokens: tuple[str, ...] = ()
    language: str = ""
    where: str = field(default="", compare=False, repr=False)

    @property
    def content(self) -> str:
        """What makes two rows the same text: case and white space do not count."""
        texts = (self.text, self.text_pair or "")
        return "\0".join(" ".join(text.casefold().split()) for text in texts)


@dataclass(frozen=True)
class Dataset:
    """The splits of one data set; a split that the source lacks is empty.

    Attributes:
        name: name of the shipped set, or of the user's file or folder.
        train, dev, test: the rows.
        sha256: hash over the source files, for cache keys.
        license: SPDX-like name, empty when unknown (a user's own data).
        attribution: what has to be said where the data or a model made from it is passed on.
        notes: what the report must say of it ("split by the hash of its text", ...).
    """

    name: str
    train: tuple[Row, ...]
    dev: tuple[Row, ...]
    test: tuple[Row, ...]
    sha256: str
    license: str = ""
    attribution: str = ""
    notes: tuple[str, ...] = field(default=())

    def split(self, name: Split) -> tuple[Row, ...]:
        """The rows of one split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]


def shipped_folders() -> dict[str, Path]:
    """Folders of the data sets that edgebert ships, by name.

    Those under a share-alike license (CC BY-SA) are kept apart, with its text.
    """
    here = Path(__file__).parent
    found = (
        file for part in ("data", "data_share_alike") for file in here.glob(f"{part}/*/data.toml")
    )
    return {file.parent.name: file.parent for file in sorted(found)}
