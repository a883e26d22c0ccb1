"""Texts without labels, for a teacher to label."""

from collections.abc import Sequence
from pathlib import Path

from edgebert.calibration import Dataset, Row, load_data, shipped_names
from edgebert.calibration.readers import READERS, read_records
from edgebert.targets.errors import InputError


def read_unlabeled(name: str) -> tuple[Row, ...]:
    """The texts of a file, or of the train split of a folder or of a shipped data set.

    A file is JSONL, CSV, TSV or Parquet with `text` (and `text_pair`), or .txt with one text a
    line. Labels are not looked at.

    Raises:
        InputError: not found, malformed, or no text in it.
    """
    path = Path(name)
    if path.is_dir() or (name in shipped_names() and not path.exists()):
        rows = [Row(row.text, None, row.text_pair) for row in load_data(name).train]
    elif path.suffix == ".txt":
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", name, "give UTF-8 text") from error
        rows = [Row(line.strip()) for line in lines]
    elif not path.exists():
        raise InputError("no such file or folder", name, "give --unlabeled a file of texts")
    else:
        rows = []
        for line, record in read_records(path):
            text, pair = record.get("text"), record.get("text_pair")
            if not isinstance(text, str) or not isinstance(pair, str | None):
                raise InputError(
                    f"no text; found the columns {', '.join(map(str, record))}",
                    f"{path}, line {line}",
                    f"name the column text ({', '.join(READERS)}), or give a .txt",
                )
            rows.append(Row(text, None, pair or None))
    texts = tuple(row for row in rows if row.text.strip())
    if not texts:
        raise InputError("0 usable texts", name, "give one text a row")
    return texts


def without_held_out(rows: Sequence[Row], data: Dataset) -> tuple[Row, ...]:
    """The rows whose text is in neither the dev nor the test split, nor twice among them."""
    held_out = {row.content for row in (*data.dev, *data.test)}
    unique = {row.content: row for row in rows if row.content not in held_out}
    return tuple(unique.values())
