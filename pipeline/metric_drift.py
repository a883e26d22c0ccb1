"""Metrics before and after with the interval of every figure."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from edgebert.pipeline import intervals
from edgebert.pipeline.bootstrap import RESAMPLES, Floats, quantiles
from edgebert.pipeline.findings import MetricDrift
from edgebert.pipeline.intervals import TAIL, Interval
from edgebert.pipeline.metrics import METRICS, Predictions, metric_drops, row_statistics

BOUND_TAIL = 0.05  # of a one-sided bound with 95 % confidence
# Two-sided ends, then one-sided bounds.
SHARES = (TAIL, 1 - TAIL, BOUND_TAIL, 1 - BOUND_TAIL)


def measure_metrics(
    predictions: Predictions, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[MetricDrift, ...]:
    """All metrics of the task, the primary one first.

    The intervals of an accuracy over rows are score intervals, those of correlations follow from
    Fisher's z, all others are bootstrapped. A bootstrap shows nothing where no row changed, and the
    next row may: there the interval of the drop reaches as far as the rule of three.
    """
    statistics, counts = row_statistics(predictions)

    def figures(sums: Floats) -> Floats:
        table = METRICS[predictions.task](sums, predictions.label_count)
        sides = [np.array([pair[side] for pair in table.values()]) for side in (0, 1)]
        return np.concatenate([*sides, metric_drops(table)])

    sums = counts @ statistics
    names = list(METRICS[predictions.task](sums, predictions.label_count))
    points = figures(sums)
    ends = quantiles(statistics, counts, figures, SHARES, seed, resamples)
    drifts = []
    for index, name in enumerate(names):
        columns = [index + side * len(names) for side in range(3)]
        drifts.append(bootstrapped(name, points[columns], ends[:, columns]))
    changed = bool((predictions.reference != predictions.artifact).any())
    if predictions.task != "regression" and not changed and predictions.answered.all():
        drifts = [_with_unseen(drift, predictions.rows) for drift in drifts]
    if predictions.task == "single_label":
        drifts[0] = share_drift(names[0], *predictions.right())
    elif predictions.task == "regression":
        drifts[:2] = [_correlation_drift(drift, predictions) for drift in drifts[:2]]
        drifts[:2] = [
            _with_unseen(drift, predictions.rows) if drift.drop_low == drift.drop_high else drift
            for drift in drifts[:2]
        ]
    return tuple(drifts)


def bootstrapped(name: str, points: Floats, ends: Floats) -> MetricDrift:
    """A metric from its bootstrap.

    Args:
        name: of the metric.
        points: reference, artifact and drop, [3].
        ends: their quantiles at `SHARES`, [4, 3]; an interval holds its point even where the
            quantiles of a skewed metric do not.
    """
    low, high = np.minimum(ends[0], points), np.maximum(ends[1], points)
    reference, artifact, drop = (float(point) for point in points)
    return MetricDrift(
        name=name,
        reference=reference,
        reference_low=float(low[0]),
        reference_high=float(high[0]),
        artifact=artifact,
        artifact_low=float(low[1]),
        artifact_high=float(high[1]),
        drop=drop,
        drop_low=float(low[2]),
        drop_high=float(high[2]),
        drop_at_least=min(float(ends[2, 2]), drop),
        drop_at_most=max(float(ends[3, 2]), drop),
        method="bootstrap",
    )


def share_drift(
    name: str, reference: NDArray[np.bool_], artifact: NDArray[np.bool_], error: bool = False
) -> MetricDrift:
    """The drift of a share of rows.

    Args:
        name: of the share.
        reference: whether each row counts, bool [rows].
        artifact: the same of the artifact.
        error: a higher share is a loss.
    """
    rows = len(reference)
    hits = int(reference.sum()), int(artifact.sum())
    lost, won = int((reference & ~artifact).sum()), int((~reference & artifact).sum())
    if error:
        lost, won = won, lost
    drop = (lost - won) / rows
    sides = [intervals.share(count, rows) for count in hits]
    two_sided = intervals.paired_difference(lost, won, rows)
    bounds = intervals.paired_difference(lost, won, rows, BOUND_TAIL)
    if not lost and not won:  # the exact bound, which is a little wider than the score's
        bounds = -intervals.unseen(rows, BOUND_TAIL), intervals.unseen(rows, BOUND_TAIL)
    return MetricDrift(
        name=name,
        reference=hits[0] / rows,
        reference_low=sides[0][0],
        reference_high=sides[0][1],
        artifact=hits[1] / rows,
        artifact_low=sides[1][0],
        artifact_high=sides[1][1],
        drop=drop,
        drop_low=two_sided[0],
        drop_high=two_sided[1],
        drop_at_least=bounds[0],
        drop_at_most=bounds[1],
        method="score",
    )


def _with_unseen(drift: MetricDrift, rows: int) -> MetricDrift:
    two_sided, bound = intervals.unseen(rows), intervals.unseen(rows, BOUND_TAIL)
    return drift.model_copy(
        update={
            "drop_low": -two_sided,
            "drop_high": two_sided,
            "drop_at_least": -bound,
            "drop_at_most": bound,
        }
    )


def _correlation_drift(drift: MetricDrift, predictions: Predictions) -> MetricDrift:
    """Spearman or Pearson with intervals of Fisher's z, where there is one."""
    ranks = drift.name == "spearman"
    values = np.stack([predictions.expected, predictions.reference, predictions.artifact])
    values = values[:, predictions.answered]
    values = values[:, np.lexsort(values)]  # sums in an order of the values' own
    rows = values.shape[1]
    r, a = drift.reference, drift.artifact
    if rows < 4 or max(abs(r), abs(a)) > 1 - 1e-9 or not np.ptp(values, axis=1).all():
        return drift
    sides = rankdata(values, axis=1) if ranks else values
    between = min(1.0, float(np.corrcoef(sides[1:])[0, 1]))

    def difference(tail: float) -> Interval:
        low, high = intervals.correlation_difference(r, a, between, rows, tail, ranks)
        return min(low, drift.drop), max(high, drift.drop)

    ends_r, ends_a = (intervals.correlation(x, rows, ranks=ranks) for x in (r, a))
    two_sided, bounds = difference(TAIL), difference(BOUND_TAIL)
    return drift.model_copy(
        update={
            "reference_low": ends_r[0],
            "reference_high": ends_r[1],
            "artifact_low": ends_a[0],
            "artifact_high": ends_a[1],
            "drop_low": two_sided[0],
            "drop_high": two_sided[1],
            "drop_at_least": bounds[0],
            "drop_at_most": bounds[1],
            "method": "Fisher z",
        }
    )
