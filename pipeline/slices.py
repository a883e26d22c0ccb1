"""Drift of parts of the rows: short and long texts, languages, scripts."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebert.calibration.dataset import Row
from edgebert.pipeline.bootstrap import Ids
from edgebert.pipeline.findings import Slice
from edgebert.pipeline.metric_drift import measure_metrics
from edgebert.pipeline.metrics import Predictions
from edgebert.pipeline.significance import ALPHA, adjusted, changed_rows, loss_p_value

RESAMPLES = 500
MOST = 12  # slices of one kind: the largest
FEWEST = 20  # rows of a slice; fewer say nothing
SHORTEST = 8  # tokens: upper end of the first length; each next one is twice as long
# First word of the Unicode names of a script's letters, where it is not the script's name.
SCRIPTS = {"CJK": "Han", "HIRAGANA": "Kana", "KATAKANA": "Kana"}
Kind = Literal["length", "language", "script"]


def measure_slices(
    predictions: Predictions,
    rows: Sequence[Row],
    lengths: NDArray[np.int64],
    same: NDArray[np.bool_],
    seed: int = 0,
) -> tuple[Slice, ...]:
    """The first metric of every slice that has rows enough, of every kind that has several.

    Args:
        predictions: what was expected and said; `group` points into `rows`.
        rows: the rows that were measured.
        lengths: of the rows in tokens; 0 where they are not known.
        same: items that both sides label alike, bool [items].
        seed: of the bootstrap.
    """
    found: list[Slice] = []
    for kind, names in _kinds(rows, lengths):
        sizes = Counter(name for name in names if name)
        chosen = [name for name, rows in sizes.most_common(MOST) if rows >= FEWEST]
        chosen = chosen if len(sizes) > 1 else []
        if kind == "length":
            chosen.sort(key=lambda name: int(name.split("-")[0]))
        for name in chosen:
            inside = np.array([other == name for other in names])[predictions.group]
            part = predictions.select(inside)
            found.append(_slice(kind, name, part, same[inside], seed))
    if predictions.task == "regression":
        return tuple(found)
    tests = [one.mcnemar for one in found if one.mcnemar]
    p_values = adjusted([loss_p_value(test.lost, test.won) for test in tests])
    return tuple(
        one.model_copy(update={"p_adjusted": p_value, "regressed": p_value < ALPHA})
        for one, p_value in zip(found, p_values, strict=True)
    )


def script_of(text: str) -> str:
    """The script of most letters of a text (`Latin`, `Han`, ...); empty where it has none."""
    letters = Counter(
        script
        for character in unicodedata.normalize("NFKC", text)
        if (script := _script(character))
    )
    return letters.most_common(1)[0][0] if letters else ""


@cache
def _script(character: str) -> str:
    if not character.isalpha():
        return ""
    word = unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
    return SCRIPTS.get(word, word.capitalize())


def _kinds(rows: Sequence[Row], lengths: Ids) -> list[tuple[Kind, list[str]]]:
    """The name of each row's slice, of every kind."""
    kinds: list[tuple[Kind, list[str]]] = [("length", [_length(int(n)) for n in lengths])]
    if any(row.language for row in rows):
        kinds.append(("language", [row.language or "unknown" for row in rows]))
    else:
        kinds.append(("script", [script_of(f"{row.text} {row.text_pair or ''}") for row in rows]))
    return kinds


def _length(tokens: int) -> str:
    """`1-8`, `9-16`, `17-32`, ...; empty where the length is not known."""
    if tokens < 1:
        return ""
    end = SHORTEST
    while tokens > end:
        end *= 2
    return f"{1 if end == SHORTEST else end // 2 + 1}-{end}"


def _slice(kind: Kind, name: str, part: Predictions, same: NDArray[np.bool_], seed: int) -> Slice:
    classes = part.task != "regression"
    return Slice(
        kind=kind,
        name=name,
        rows=part.rows,
        metric=measure_metrics(part, seed, RESAMPLES)[0],
        agreement=float(same.mean()) if classes else None,
        mcnemar=changed_rows(*part.right()) if classes else None,
        p_adjusted=None,
    )
