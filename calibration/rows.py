"""Records to rows: the columns a row is made of, and one kind of label for a whole data set."""

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

from edgebert.calibration.dataset import Label, Row
from edgebert.calibration.readers import is_textual, read_records
from edgebert.targets.errors import InputError

# "007" and "1_0" are names. NaN and infinity are numbers here, and refused as such afterwards.
_ID = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(
    r"[+-]?(((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII
)
_KINDS = {str: "a name", int: "an id", float: "a number", tuple: "a list"}


def read_rows(file: Path) -> list[Row]:
    """The rows of one file, in its order.

    Raises:
        InputError: as `read_records`, or a column is missing or is not what it has to be.
    """
    rows = [_row(record, file, line) for line, record in read_records(file)]
    if not any(row.text.strip() for row in rows):
        raise InputError("0 usable rows", str(file), "every text is empty")
    return [_typed(row) for row in rows] if not is_textual(file) else _from_text(rows)


def unify_labels(rows: list[Row]) -> list[Row]:
    """The rows of all splits with one kind of label; ids beside numbers are numbers.

    Raises:
        InputError: two kinds of label, naming the first row whose label differs.
    """
    kinds = {type(row.label) for row in rows}
    if kinds == {int, float}:
        return [
            dataclasses.replace(row, label=float(row.label)) if isinstance(row.label, int) else row
            for row in rows
        ]
    first = rows[0]
    for row in rows:
        if type(row.label) is not type(first.label) or bool(row.tokens) != bool(first.tokens):
            raise InputError(
                f"label {row.label!r} is {_kind(row)}, {first.label!r} ({first.where}) is "
                f"{_kind(first)}",
                f"{row.where}, field label",
                "give every row the same kind of label",
            )
    return rows


def _kind(row: Row) -> str:
    return "one tag a token" if row.tokens else _KINDS[type(row.label)]


def _row(record: dict[str, Any], file: Path, line: int) -> Row:
    where = f"{file}, line {line}"
    if "tokens" in record and "tags" in record:
        return _token_row(record, where)
    if "text" not in record:
        raise InputError(
            f"no column 'text'; found: {', '.join(map(str, record)) or 'none'}",
            where,
            "name the columns text and label (and text_pair)",
        )
    pair = record.get("text_pair", record.get("text2"))
    text = _string(record["text"], "text", where)
    label = record.get("label")
    if label is None or label == "":
        raise InputError(
            "no label" if "label" in record else f"no column 'label'; found: {', '.join(record)}",
            f"{where}, field label",
            "every row needs one; leave rows without it out",
        )
    return Row(
        text=text,
        label=label,
        text_pair=None if pair is None else _string(pair, "text_pair", where),
        language=_language(record),
        where=where,
    )


def _token_row(record: dict[str, Any], where: str) -> Row:
    tokens = _list(record["tokens"], "tokens", where)
    tags = _list(record["tags"], "tags", where)
    if len(tokens) != len(tags):
        raise InputError(
            f"{len(tokens)} tokens but {len(tags)} tags", where, "give one tag a token"
        )
    words = tuple(_string(token, "tokens", where) for token in tokens)
    labels = tuple(str(tag) for tag in tags)
    return Row(" ".join(words), labels, tokens=words, language=_language(record), where=where)


def _language(record: dict[str, Any]) -> str:
    return str(record.get("lang") or record.get("language") or "")


def _string(value: Any, field: str, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(
            f"{field} is {json.dumps(value, default=str)[:40]}, not a string",
            f"{where}, field {field}",
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{field} holds half of a surrogate pair", f"{where}, field {field}"
        ) from error
    return value


def _list(value: Any, field: str, where: str) -> list[Any]:
    if isinstance(value, str):  # from CSV: a JSON list, or words separated by blanks
        value = _json_list(value) or value.split()
    if not isinstance(value, list):
        raise InputError(f"{field} is no list", f"{where}, field {field}")
    return value


def _json_list(text: str) -> list[Any] | None:
    if not text.startswith("["):
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, list) else None


def _typed(row: Row) -> Row:
    """Check the label of a format with types; a list becomes a tuple of names."""
    label: Any = row.label
    if isinstance(label, list):
        label = tuple(str(name) for name in label)
    if isinstance(label, bool) or not isinstance(label, str | int | float | tuple):
        raise InputError(
            f"label {label!r} is neither name, id, number nor list", f"{row.where}, field label"
        )
    return _finite(dataclasses.replace(row, label=label))


def _finite(row: Row) -> Row:
    if isinstance(row.label, float) and not math.isfinite(row.label):
        raise InputError(
            f"label is {row.label}", f"{row.where}, field label", "a number has to be finite"
        )
    return row


def _from_text(rows: list[Row]) -> list[Row]:
    """Labels of a format without types: lists, ids or numbers where every row's is one."""
    if rows[0].tokens:
        return rows
    for parse in (_as_list, _as_id, _as_number):
        labels = [parse(str(row.label).strip()) for row in rows]
        if all(label is not None for label in labels):
            return [
                _finite(dataclasses.replace(row, label=label))
                for row, label in zip(rows, labels, strict=True)
            ]
    return [dataclasses.replace(row, label=str(row.label).strip()) for row in rows]


def _as_list(text: str) -> Label | None:
    names = _json_list(text)
    return None if names is None else tuple(str(name) for name in names)


def _as_id(text: str) -> Label | None:
    return int(text) if _ID.fullmatch(text) else None


def _as_number(text: str) -> Label | None:
    return float(text) if _NUMBER.fullmatch(text) else None
