"""Load a data set: the user's file or folder, or one that edgebert ships."""

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from edgebert.calibration.dataset import SPLITS, Dataset, Row, Split, shipped_folders
from edgebert.calibration.readers import READERS
from edgebert.calibration.rows import read_rows, unify_labels
from edgebert.targets.errors import InputError

_ALIASES: dict[str, Split] = {
    **{split: split for split in SPLITS},
    "validation": "dev",
    "valid": "dev",
    "val": "dev",
}
_SHARD = re.compile(r"-\d+-of-\d+$")  # train-00000-of-00002.parquet
_TENTHS_TRAIN, _TENTHS_DEV = 8, 1


def load_dataset(path: Path) -> Dataset:
    """Read the user's data.

    A folder holds `train`, `dev` (or `validation`) and `test`, each in any format. A single file,
    or a folder with nothing but `train`, is split by the hash of its text (80/10/10); a folder
    without `dev` has a tenth of `train` held out for it. Both are said in the notes.

    Raises:
        InputError: not found, no split in the folder, or a malformed file.
    """
    if not path.exists():
        raise InputError("no such file or folder", str(path), "give --data a file or a folder")
    files = _split_files(path) if path.is_dir() else {"train": [path]}
    rows: dict[Split, list[Row]] = {
        split: [row for file in files.get(split, []) for row in read_rows(file)] for split in SPLITS
    }
    # The kind of label is one for the whole set: unify it over all splits, then part them again.
    every = iter(unify_labels([row for split in SPLITS for row in rows[split]]))
    rows = {split: [next(every) for _ in rows[split]] for split in SPLITS}
    notes = [*_drop_empty(rows), *_fill_splits(rows)]
    return Dataset(
        name=path.stem if path.is_file() else path.resolve().name,
        train=tuple(rows["train"]),
        dev=tuple(rows["dev"]),
        test=tuple(rows["test"]),
        sha256=_sha256(file for split in SPLITS for file in files.get(split, [])),
        notes=(*notes, *_overlaps(rows)),
    )


def shipped_names() -> list[str]:
    """Names of the data sets that edgebert ships."""
    return sorted(shipped_folders())


def shipped_dataset(name: str) -> Dataset:
    """A data set that edgebert ships, with its license and attribution from its `data.toml`.

    Raises:
        InputError: unknown name, with the nearest ones.
    """
    if name not in shipped_names():
        near = difflib.get_close_matches(name, shipped_names(), n=3, cutoff=0.3)
        raise InputError(f"no data set '{name}'", f"nearest: {', '.join(near or shipped_names())}")
    folder = shipped_folders()[name]
    about = tomllib.loads((folder / "data.toml").read_text(encoding="utf-8"))
    data = load_dataset(folder)
    return Dataset(
        name=name,
        train=data.train,
        dev=data.dev,
        test=data.test,
        sha256=data.sha256,
        license=about["license"],
        attribution=about["attribution"],
        notes=data.notes,
    )


def load_data(name: str) -> Dataset:
    """A user's file or folder, or else a data set that edgebert ships, by name.

    Raises:
        InputError: as `load_dataset`.
    """
    if name in shipped_names() and not Path(name).exists():
        return shipped_dataset(name)
    return load_dataset(Path(name))


def _split_files(folder: Path) -> dict[Split, list[Path]]:
    files: dict[Split, list[Path]] = {}
    candidates = sorted(file for file in folder.iterdir() if file.suffix in READERS)
    for file in candidates:
        stem = _SHARD.sub("", file.stem)
        if stem in _ALIASES:
            files.setdefault(_ALIASES[stem], []).append(file)
    for split, parts in files.items():
        whole = {_SHARD.sub("", file.stem) + file.suffix for file in parts}
        if len(whole) > 1:
            raise InputError(
                f"two files for '{split}': {', '.join(sorted(whole))}",
                str(folder),
                "keep one of them",
            )
    if not files:
        found = ", ".join(file.name for file in candidates) or "no data file"
        raise InputError(
            f"no train, dev or test in this folder; found: {found}",
            str(folder),
            f"name them train, dev, test with one of {', '.join(READERS)}, or give one file",
        )
    return files


def _drop_empty(rows: dict[Split, list[Row]]) -> list[str]:
    before = sum(map(len, rows.values()))
    rows.update({split: [row for row in rows[split] if row.text.strip()] for split in SPLITS})
    empty = before - sum(map(len, rows.values()))
    return [f"{empty} rows with an empty text were left out"] if empty else []


def _fill_splits(rows: dict[Split, list[Row]]) -> list[str]:
    """Split `train` by hash where `dev`, or `dev` and `test`, are missing; say so."""
    if rows["dev"] or not rows["train"]:
        return []
    whole, splits_test = rows["train"], not rows["test"]
    rows["train"] = []
    for row in whole:
        tenth = int(hashlib.sha256(row.content.encode()).hexdigest(), 16) % 10
        dev = _TENTHS_TRAIN <= tenth < _TENTHS_TRAIN + _TENTHS_DEV
        test = splits_test and tenth >= _TENTHS_TRAIN + _TENTHS_DEV
        rows["dev" if dev else "test" if test else "train"].append(row)
    if splits_test:
        return ["split by the hash of its text: 80 % train, 10 % dev, 10 % test"]
    return ["no dev split given: a tenth of train was held out by the hash of its text"]


def _overlaps(rows: dict[Split, list[Row]]) -> list[str]:
    known = {row.content for row in rows["train"]}
    counts = {split: sum(row.content in known for row in rows[split]) for split in SPLITS[1:]}
    return [
        f"overlap: {count} of {len(rows[split])} {split} rows also stand in train"
        for split, count in counts.items()
        if count
    ]


def _sha256(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
