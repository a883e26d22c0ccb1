"""Read one data file into records: a dictionary of columns and the line it begins on.

JSON lines, CSV, TSV and Parquet; text is UTF-8, with or without a byte order mark. A format is one
function here and one entry of `READERS`.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from edgebert.targets.errors import InputError

Record = tuple[int, dict[str, Any]]


def read_records(file: Path) -> list[Record]:
    """The records of one file with their 1-based lines (Parquet: rows); blank lines are none.

    Raises:
        InputError: unknown suffix, unreadable, not UTF-8, malformed, or no record in it.
    """
    if file.suffix not in READERS:
        raise InputError(
            f"'{file.suffix or file.name}' is no data format",
            str(file),
            f"known: {', '.join(READERS)}",
        )
    try:
        records = list(READERS[file.suffix](file))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", str(file)) from error
    if not records:
        raise InputError("0 usable rows", str(file), "give one row a line, with text and label")
    return records


def is_textual(file: Path) -> bool:
    """True where the format has no types, so that a number arrives as text."""
    return file.suffix in (".csv", ".tsv")


def _text(file: Path) -> str:
    data = file.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            f"{file}, line {line}",
            "save it as UTF-8",
        ) from error


def _json_lines(file: Path) -> Iterator[Record]:
    # Not splitlines(): U+2028 and its like are no line ends in JSON lines.
    for number, line in enumerate(_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                f"not JSON: {error.msg} at column {error.colno}",
                f"{file}, line {number}",
                "each line is one JSON object",
            ) from error
        if not isinstance(record, dict):
            raise InputError(
                "not a JSON object", f"{file}, line {number}", 'write {"text": ..., "label": ...}'
            )
        yield number, record


def _separated(file: Path, delimiter: str) -> Iterator[Record]:
    reader = csv.reader(io.StringIO(_text(file), newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    line = 1
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"malformed: {error}",
                f"{file}, line {line}",
                "quote a field that holds quotes, separators or line breaks",
            ) from error
        if not any(field.strip() for field in fields):
            continue
        if not header:
            header = [name.strip() for name in fields]
            _check_header(file, header, delimiter)
        elif len(fields) != len(header):
            raise InputError(
                f"{len(fields)} fields where the header has {len(header)}",
                f"{file}, line {line}",
                "quote a field that holds the separator",
            )
        else:
            yield line, dict(zip(header, fields, strict=True))


def _check_header(file: Path, header: list[str], delimiter: str) -> None:
    for other, name in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
        if len(header) == 1 and other != delimiter and other in header[0]:
            raise InputError(
                f"separated by {name}, not by {'tabs' if delimiter == chr(9) else 'commas'}",
                f"{file}, line 1",
                "save it as .csv with commas or as .tsv with tabs (Excel: 'CSV UTF-8')",
            )
    twice = {name for name in header if header.count(name) > 1}
    if twice:
        raise InputError(f"two columns are named '{min(twice)}'", f"{file}, line 1")


def _csv(file: Path) -> Iterator[Record]:
    return _separated(file, ",")


def _tsv(file: Path) -> Iterator[Record]:
    return _separated(file, "\t")


def _parquet(file: Path) -> Iterator[Record]:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(file)
    except pyarrow.ArrowException as error:
        message = str(error).splitlines()[0]
        raise InputError(f"not a Parquet file: {message}", str(file)) from error
    names = _class_names(table.schema.metadata or {})
    for number, record in enumerate(table.to_pylist(), start=1):
        for column, of_ids in names.items():
            value = record.get(column)
            if isinstance(value, int) and 0 <= value < len(of_ids):
                record[column] = of_ids[value]
        yield number, record


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    """Names of id columns, where `datasets` of Hugging Face left them in the schema."""
    info = json.loads(metadata.get(b"huggingface", b"{}")).get("info") or {}
    features = info.get("features") or {}
    return {
        column: feature["names"]
        for column, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }


READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _json_lines,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
}
