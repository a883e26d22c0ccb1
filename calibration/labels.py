"""Match the labels of data to those of a model: by name or by explicit id, never by position."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgebert.calibration.dataset import Row
from edgebert.targets.errors import InputError

IGNORED = -100  # a word whose tag does not count, as in transformers
_IGNORED_TAGS = ("", str(IGNORED))
_GENERIC = re.compile(r"LABEL_\d+")
Task = Literal["single_label", "multi_label", "regression", "token"]


@dataclass(frozen=True)
class Targets:
    """What the model should have answered.

    Attributes:
        values: single_label: ids int64 [rows]; multi_label: bool [rows, labels]; regression:
            float64 [rows]; token: ids int64 [words], the words of all rows one after the other,
            `IGNORED` where a tag does not count.
        notes: what a reader must know of the matching.
    """

    values: NDArray[Any]
    notes: tuple[str, ...] = ()


def match_labels(rows: Sequence[Row], labels: Sequence[str], task: Task) -> Targets:
    """Turn the labels of rows into ids of the model.

    Names match whatever their case. Integer ids are the model's ids, unless its names are numbers
    themselves. Names against a model whose own are generic (`LABEL_0`) are refused, since any
    order would be a guess.

    Args:
        rows: rows with labels.
        labels: the model's names in the order of their ids.
        task: what the model's head is for.

    Raises:
        InputError: unknown label, with its row and the nearest names; or a kind of label that the
            task has no use for.
    """
    for row in rows:
        _check_kind(row, task)
    if task == "regression":
        numbers = [float(row.label) for row in rows if isinstance(row.label, int | float)]
        return Targets(np.array(numbers, dtype=np.float64))
    names = [_names(row) for row in rows]
    distinct = {name for each in names for name in each if name not in _IGNORED_TAGS}
    by_id = _are_ids(distinct, labels)
    find = _Finder(labels, by_id)
    matched = [[find(name, row) for name in each] for each, row in zip(names, rows, strict=True)]
    notes = ("labels are matched by id: the data gives no names",) if by_id else ()
    if task == "multi_label":
        several = np.zeros((len(rows), len(labels)), dtype=bool)
        for index, ids in enumerate(matched):
            several[index, ids] = True
        return Targets(several, notes)
    return Targets(np.array([i for ids in matched for i in ids], dtype=np.int64), notes)


def _check_kind(row: Row, task: Task) -> None:
    fits = {
        "single_label": isinstance(row.label, str | int),
        "multi_label": isinstance(row.label, str | int | tuple) and not row.tokens,
        "regression": isinstance(row.label, int | float),
        "token": isinstance(row.label, tuple) and bool(row.tokens),
    }[task]
    if not fits:
        wanted = {
            "single_label": "one name or id",
            "multi_label": "a list of names",
            "regression": "a number",
            "token": "tokens and tags",
        }[task]
        raise InputError(
            f"label {row.label!r} does not fit the model, whose task is {task}",
            row.where,
            f"this task takes {wanted} a row",
        )


def _names(row: Row) -> tuple[str, ...]:
    return row.label if isinstance(row.label, tuple) else (str(row.label),)


def _are_ids(names: set[str], labels: Sequence[str]) -> bool:
    if all(label.isdecimal() for label in labels):
        return False  # "1".."5" stars: a number is a name here, not an id
    return bool(names) and all(name.isdecimal() for name in names)


class _Finder:
    """Finds the id of one label, exactly first, then whatever its case."""

    def __init__(self, labels: Sequence[str], by_id: bool) -> None:
        self.labels, self.by_id = labels, by_id
        self.exact = {name: index for index, name in enumerate(labels)}
        folded = [name.casefold().strip() for name in labels]
        self.folded = {name: index for index, name in enumerate(folded) if folded.count(name) == 1}

    def __call__(self, name: str, row: Row) -> int:
        if row.tokens and name in _IGNORED_TAGS:
            return IGNORED
        if self.by_id:
            if int(name) >= len(self.labels):
                raise InputError(
                    f"label id {name} is none of the model's 0..{len(self.labels) - 1}", row.where
                )
            return int(name)
        found = self.exact.get(name, self.folded.get(name.casefold().strip()))
        if found is None:
            raise self._unknown(name, row)
        return found

    def _unknown(self, name: str, row: Row) -> InputError:
        if all(_GENERIC.fullmatch(label) for label in self.labels):
            return InputError(
                f"the model's labels are only {self.labels[0]} .. {self.labels[-1]}, "
                f"the data's are names ('{name}')",
                row.where,
                "put the names into id2label of the model's config.json, or give ids as labels",
            )
        near = difflib.get_close_matches(name, self.labels, n=3, cutoff=0.3)
        return InputError(
            f"unknown label '{name}'",
            row.where,
            f"nearest of the model's {len(self.labels)}: {', '.join(near or self.labels[:3])}",
        )
