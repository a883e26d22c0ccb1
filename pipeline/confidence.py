"""Calibration of the confidence: whether answers given with 90 % are right nine times of ten.

Expected calibration error over bins of equal width: Guo et al. 2017, arXiv:1706.04599.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from edgebert.pipeline.bootstrap import Floats, Ids, quantiles
from edgebert.pipeline.findings import ConfidenceBin, ConfidenceDrift
from edgebert.pipeline.metric_drift import SHARES, bootstrapped
from edgebert.pipeline.metrics import Predictions

BINS = 15
RESAMPLES = 1000


@dataclass(frozen=True)
class _Side:
    """Answers of one side: confidence, whether right, and bin; [answers] each."""

    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]

    @property
    def bin(self) -> Ids:
        return np.minimum((self.confidence * BINS).astype(np.int64), BINS - 1)

    def gaps(self, rows: Ids) -> Floats:
        """Confidence less rightness, summed over the answers of a row, [rows, bins]."""
        cells = rows * BINS + self.bin
        size = (int(rows.max()) + 1) * BINS
        sums = np.bincount(cells, self.confidence - self.right, size)
        return sums.astype(np.float64).reshape(-1, BINS)

    def bins(self) -> tuple[ConfidenceBin, ...]:
        found = []
        for index in range(BINS):
            inside = self.bin == index
            any_inside = bool(inside.any())
            found.append(
                ConfidenceBin(
                    low=index / BINS,
                    high=(index + 1) / BINS,
                    items=int(inside.sum()),
                    confidence=float(self.confidence[inside].mean()) if any_inside else None,
                    right=float(self.right[inside].mean()) if any_inside else None,
                )
            )
        return tuple(found)


def measure_confidence(
    predictions: Predictions, reference: NDArray[Any], artifact: NDArray[Any], seed: int = 0
) -> ConfidenceDrift | None:
    """Calibration before and after; None for regression.

    The confidence is the probability of the label that is said; with several labels a row every
    label is an answer of its own, yes or no. Where logits are not finite it is 0.

    Args:
        predictions: what was expected and said.
        reference: logits of the checkpoint, [items, labels].
        artifact: those of the artifact.
        seed: of the bootstrap.
    """
    if predictions.task == "regression":
        return None
    sides = (
        _side(predictions, predictions.reference, reference),
        _side(predictions, predictions.artifact, artifact),
    )
    _, rows = np.unique(predictions.group, return_inverse=True)
    if predictions.task == "multi_label":
        rows = np.repeat(rows, predictions.label_count)
    count = np.bincount(rows).astype(np.float64)[:, None]
    statistics = np.hstack([*(side.gaps(rows) for side in sides), count])

    def figures(sums: Floats) -> Floats:
        gaps = np.abs(sums[..., :-1])
        r = gaps[..., :BINS].sum(-1) / sums[..., -1]
        a = gaps[..., BINS:].sum(-1) / sums[..., -1]
        return np.array([r, a, a - r])

    points = figures(statistics.sum(axis=0))
    weights = np.ones(len(statistics), np.int64)
    ends = quantiles(statistics, weights, figures, SHARES, seed, RESAMPLES)
    # Resampled rows are farther from the diagonal than the rows are: the basic interval, which
    # mirrors the quantiles at the figure, takes that out again.
    mirrored = 2 * points - ends[[1, 0, 3, 2]]
    mirrored[:, :2] = np.clip(mirrored[:, :2], 0.0, 1.0)
    return ConfidenceDrift(
        ece=bootstrapped("ece", points, mirrored),
        reference=sides[0].bins(),
        artifact=sides[1].bins(),
    )


def _side(predictions: Predictions, said: NDArray[Any], logits: NDArray[Any]) -> _Side:
    finite = np.isfinite(logits).all(axis=1, keepdims=True)
    values = np.where(finite, logits, 0.0).astype(np.float64)
    if predictions.task == "multi_label":
        confidence = np.where(finite, expit(np.abs(values)), 0.0)
        return _Side(confidence.ravel(), ((said == predictions.expected) & finite).ravel())
    confidence = np.where(finite[:, 0], softmax(values, axis=1).max(axis=1), 0.0)
    return _Side(confidence, np.asarray(said == predictions.expected))
