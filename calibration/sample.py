"""Draw rows: seeded, spread over labels and lengths, by content and never by file order."""

import hashlib
from collections.abc import Sequence

from edgebert.calibration.dataset import Dataset, Row
from edgebert.targets.errors import InputError

# Ranges of activations from fewer texts than this say little about the ranges in use.
MINIMUM_ROWS = 8


def draw_calibration(dataset: Dataset, rows: int, seed: int) -> tuple[Row, ...]:
    """Draw calibration texts from the train split.

    Texts that also stand in dev or test are left out, and each text is drawn once at most. Any
    prefix of the result is itself a random draw.

    Args:
        dataset: the data.
        rows: how many; all usable ones where there are fewer.
        seed: of the draw.

    Raises:
        InputError: no train split, fewer than `MINIMUM_ROWS` usable rows, or so few asked for.
    """
    if rows < MINIMUM_ROWS:
        raise InputError(
            f"{rows} calibration rows asked for", "", f"ask for {MINIMUM_ROWS} or more"
        )
    if not dataset.train:
        raise InputError(
            "no train split to draw calibration texts from", dataset.name, "add train.jsonl to it"
        )
    held_out = {row.content for row in (*dataset.dev, *dataset.test)}
    usable = {row.content: row for row in dataset.train if row.content not in held_out}
    if len(usable) < MINIMUM_ROWS:
        raise InputError(
            f"{len(usable)} usable train rows for calibration, {MINIMUM_ROWS} are needed",
            f"{dataset.name}: {len(dataset.train)} train rows, less those that dev or test hold",
            "add train texts",
        )
    candidates = tuple(usable[content] for content in sorted(usable))
    drawn = [candidates[index] for index in spread(candidates, rows, seed)]
    return tuple(sorted(drawn, key=lambda row: _rank(row, seed)))


def spread(rows: Sequence[Row], count: int, seed: int) -> list[int]:
    """Indices, ascending, of `count` rows: a stratified draw in proportion to labels and lengths.

    The rows in the order of label and length are cut into `count` strata of equal size, and one row
    is drawn from each.
    """
    if count >= len(rows):
        return list(range(len(rows)))
    order = sorted(
        range(len(rows)),
        key=lambda i: (_stratum(rows[i]), len(rows[i].text), _rank(rows[i], seed), i),
    )
    edges = [step * len(rows) // count for step in range(count + 1)]
    strata = (order[edges[step] : edges[step + 1]] for step in range(count))
    return sorted(min(stratum, key=lambda i: (_rank(rows[i], seed), i)) for stratum in strata)


def _stratum(row: Row) -> tuple[float, str]:
    if isinstance(row.label, float):
        return row.label, ""  # regression: spread over the values
    if row.tokens and isinstance(row.label, tuple):
        return 0.0, " ".join(sorted(set(row.label)))  # the tags that stand in it, not their order
    return 0.0, str(row.label)


def _rank(row: Row, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{row.text}\0{row.text_pair}".encode()).digest()
