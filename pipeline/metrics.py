"""Task metrics before and after compression.

Every metric is a function of sums over rows, which makes its bootstrap a matrix product.
single_label: accuracy, macro F1, MCC. multi_label: micro F1, macro F1, subset accuracy. regression:
Spearman, Pearson, MAE. token: accuracy and macro F1 over the words. Macro F1 is over the labels
that the rows have.

Multi-class MCC after Gorodkin, Computational Biology and Chemistry 28, 2004.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from edgebert.pipeline.artifact import Task
from edgebert.pipeline.bootstrap import Floats, Ids


@dataclass(frozen=True)
class Predictions:
    """What was expected and what both sides said, item by item (rows, or words of rows).

    A side that gave no finite logits has said nothing: class `len(labels)`, no label at all, NaN.

    Attributes:
        task: decides what the arrays hold: class ids int64 [items] (single_label, token), bool
            [items, labels] (multi_label), float64 [items] (regression).
        expected, reference, artifact: the arrays.
        answered: False where the artifact said nothing, bool [items].
        group: row that an item belongs to, int64 [items]; rows are what is resampled.
        label_count: number of labels.
    """

    task: Task
    expected: NDArray[Any]
    reference: NDArray[Any]
    artifact: NDArray[Any]
    answered: NDArray[np.bool_]
    group: Ids
    label_count: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(np.unique(self.group))

    def select(self, keep: NDArray[np.bool_]) -> "Predictions":
        """Some of the items."""
        return Predictions(
            self.task,
            self.expected[keep],
            self.reference[keep],
            self.artifact[keep],
            self.answered[keep],
            self.group[keep],
            self.label_count,
        )

    def right(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Rows that the reference, and that the artifact, has wholly right; bool [rows] each."""
        groups, group = np.unique(self.group, return_inverse=True)

        def whole(said: NDArray[Any]) -> NDArray[np.bool_]:
            wrong = (said != self.expected).reshape(len(said), -1).any(axis=1)
            return np.asarray(np.bincount(group, weights=wrong, minlength=len(groups)) == 0)

        return whole(self.reference), whole(self.artifact) & whole_rows(self.answered, group)


def whole_rows(values: NDArray[np.bool_], group: Ids) -> NDArray[np.bool_]:
    """Rows of which every item is true; bool [rows]."""
    return np.asarray(np.bincount(group, weights=~values) == 0)


@dataclass(frozen=True)
class LabelCounts:
    """Per label: items expected, said and hit, each float64 [..., labels] (said: + none)."""

    true: Floats
    reference: Floats
    artifact: Floats
    reference_hit: Floats
    artifact_hit: Floats

    @classmethod
    def of(cls, sums: Floats, width: int) -> "LabelCounts":
        """Take the sums of `_class_statistics` apart."""
        edges = np.cumsum([width, width + 1, width + 1, width, width])
        return cls(*np.split(sums[..., : edges[-1]], edges[:-1], axis=-1))


def label_counts(predictions: Predictions) -> LabelCounts:
    """Counts per label over all items; not for regression."""
    statistics, counts = row_statistics(predictions)
    return LabelCounts.of(counts @ statistics, predictions.label_count)


def f1(true: Floats, said: Floats, hit: Floats) -> Floats:
    """F1 from counts; 0 where there is nothing to count."""
    return _ratio(2 * hit, true + said)


def _ratio(above: Any, below: Any) -> Floats:
    above, below = np.broadcast_arrays(np.asarray(above, np.float64), below)
    return np.asarray(np.divide(above, below, out=np.zeros(above.shape), where=below > 0))


Metrics = dict[str, tuple[Floats, Floats]]  # name -> reference and artifact, each [...] as the sums


def metric_drops(metrics: Metrics) -> Floats:
    """How much worse the artifact is, [metrics, ...]: an error such as MAE is better when lower."""
    return np.array([(a - r) if name == "mae" else (r - a) for name, (r, a) in metrics.items()])


def _class_metrics(sums: Floats, width: int) -> Metrics:
    counts = LabelCounts.of(sums, width)
    return {
        "accuracy": _both(counts, lambda true, said, hit: _ratio(hit.sum(-1), true.sum(-1))),
        "macro_f1": _both(counts, _macro_f1),
        "mcc": _both(counts, _mcc),
    }


def _token_metrics(sums: Floats, width: int) -> Metrics:
    metrics = _class_metrics(sums, width)
    return {name: metrics[name] for name in ("accuracy", "macro_f1")}


def _multi_metrics(sums: Floats, width: int) -> Metrics:
    counts = LabelCounts.of(sums, width)
    rows, exact_reference, exact_artifact = np.moveaxis(sums[..., -3:], -1, 0)
    return {
        "micro_f1": _both(
            counts, lambda true, said, hit: f1(true.sum(-1), said.sum(-1), hit.sum(-1))
        ),
        "macro_f1": _both(counts, _macro_f1),
        "subset_accuracy": (_ratio(exact_reference, rows), _ratio(exact_artifact, rows)),
    }


def _both(counts: LabelCounts, metric: Any) -> tuple[Floats, Floats]:
    return (
        metric(counts.true, counts.reference, counts.reference_hit),
        metric(counts.true, counts.artifact, counts.artifact_hit),
    )


def _macro_f1(true: Floats, said: Floats, hit: Floats) -> Floats:
    scores = f1(true, said[..., : true.shape[-1]], hit)
    return _ratio((scores * (true > 0)).sum(-1), (true > 0).sum(-1))


def _mcc(true: Floats, said: Floats, hit: Floats) -> Floats:
    total = true.sum(-1)
    covariance = hit.sum(-1) * total - (true * said[..., : true.shape[-1]]).sum(-1)
    spread = (total**2 - (said**2).sum(-1)) * (total**2 - (true**2).sum(-1))
    return _ratio(covariance, np.sqrt(np.maximum(spread, 0.0)))


def _regression_metrics(sums: Floats, _: int) -> Metrics:
    rows, error_reference, error_artifact = np.moveaxis(sums[..., :3], -1, 0)
    return {
        "spearman": _correlations(rows, sums[..., 3:11]),
        "pearson": _correlations(rows, sums[..., 11:]),
        "mae": (_ratio(error_reference, rows), _ratio(error_artifact, rows)),
    }


def _correlations(rows: Floats, moments: Floats) -> tuple[Floats, Floats]:
    """Pearson of expected and reference, expected and artifact, from the sums of `_moments`."""
    y, r, a, yy, rr, aa, yr, ya = np.moveaxis(moments, -1, 0)

    def correlation(x: Floats, xx: Floats, yx: Floats) -> Floats:
        spread = np.maximum(rows * yy - y**2, 0.0) * np.maximum(rows * xx - x**2, 0.0)
        # Rounding leaves a constant with a spread that is not quite 0.
        spread = np.where(spread <= 1e-14 * (rows * yy) * (rows * xx), 0.0, spread)
        return _ratio(rows * yx - y * x, np.sqrt(spread))

    return correlation(r, rr, yr), correlation(a, aa, ya)


METRICS: dict[Task, Callable[[Floats, int], Metrics]] = {
    "single_label": _class_metrics,
    "multi_label": _multi_metrics,
    "regression": _regression_metrics,
    "token": _token_metrics,
}


def row_statistics(predictions: Predictions) -> tuple[Floats, Ids]:
    """What is summed, [rows, k], and how many times each row counts, [rows]."""
    if predictions.task == "single_label":
        # Rows that agree in all three ids are one row that counts several times.
        columns = (predictions.expected, predictions.reference, predictions.artifact)
        (y, r, a), counts = np.unique(np.stack(columns), axis=1, return_counts=True)
        return _class_statistics(y, r, a, np.arange(len(y)), predictions.label_count), counts
    if predictions.task == "token":
        _, rows = np.unique(predictions.group, return_inverse=True)
        columns = (predictions.expected, predictions.reference, predictions.artifact)
        statistics = _class_statistics(*columns, rows, predictions.label_count)
    elif predictions.task == "multi_label":
        statistics = _multi_statistics(predictions)
    else:
        statistics = _regression_statistics(predictions)
    return statistics, np.ones(len(statistics), dtype=np.int64)


def _class_statistics(
    expected: Ids, reference: Ids, artifact: Ids, rows: Ids, width: int
) -> Floats:
    def one_hot(ids: Ids, size: int, where: Any = slice(None)) -> Floats:
        cells = rows[where] * size + ids[where]
        shape = (int(rows.max()) + 1, size)
        return np.bincount(cells, minlength=shape[0] * size).reshape(shape).astype(np.float64)

    return np.hstack(
        [
            one_hot(expected, width),
            one_hot(reference, width + 1),  # one more: said nothing
            one_hot(artifact, width + 1),
            one_hot(expected, width, expected == reference),
            one_hot(expected, width, expected == artifact),
        ]
    )


def _multi_statistics(predictions: Predictions) -> Floats:
    true, reference, artifact = predictions.expected, predictions.reference, predictions.artifact
    none = np.zeros((len(true), 1))
    exact_reference = (true == reference).all(axis=1)
    exact_artifact = (true == artifact).all(axis=1) & predictions.answered
    return np.hstack(
        [
            *(true, reference, none, artifact, none, true & reference, true & artifact),
            *(none + 1, exact_reference[:, None], exact_artifact[:, None]),
        ]
    ).astype(np.float64)


def _regression_statistics(predictions: Predictions) -> Floats:
    answered = predictions.answered
    values = np.stack([predictions.expected, predictions.reference, predictions.artifact])[
        :, answered
    ]
    if not values.shape[1]:
        return np.zeros((1, 19))
    values = values[:, np.lexsort(values)]  # sums in an order of the values' own, to the last bit
    y, r, a = values
    return np.stack(
        [
            *(np.ones_like(y), np.abs(y - r), np.abs(y - a)),
            *_moments(rankdata(values, axis=1)),
            *_moments(values),
        ],
        axis=1,
    )


def _moments(values: Floats) -> list[Floats]:
    # Centered and scaled, which changes no correlation, so that squares lose no digits.
    centered = values - values.mean(axis=1, keepdims=True)
    scale = np.abs(centered).max(axis=1, keepdims=True)
    y, r, a = centered / np.where(scale > 0, scale, 1.0)
    return [y, r, a, y * y, r * r, a * a, y * r, y * a]
