"""How far the logits of an artifact are from those of the checkpoint, item by item."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from edgebert.pipeline import intervals
from edgebert.pipeline.artifact import Task
from edgebert.pipeline.bootstrap import Ids, quantiles


@dataclass(frozen=True)
class Distances:
    """Per item: KL in nats and cosine (both None for regression), largest difference of a logit."""

    kl: NDArray[np.float64] | None
    cosine: NDArray[np.float64] | None
    absolute: NDArray[np.float64]
    answered: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        task: Task,
        reference: NDArray[Any],
        artifact: NDArray[Any],
        answered: NDArray[np.bool_],
    ) -> "Distances":
        """Distances between logits [items, labels]; `answered`: where the artifact's are finite."""
        r = reference.astype(np.float64)
        a = np.where(answered[:, None], artifact, 0.0).astype(np.float64)
        absolute = np.abs(r - a).max(axis=1)
        if task == "regression":
            return cls(None, None, absolute, answered)
        norms = np.linalg.norm(r, axis=1) * np.linalg.norm(a, axis=1)
        equal = (r == a).all(axis=1)  # two zero vectors are alike
        cosine = np.divide((r * a).sum(axis=1), norms, out=equal.astype(float), where=norms > 0)
        if task == "multi_label":  # one Bernoulli a label, summed
            p, q = np.exp(log_expit(r)), np.exp(log_expit(-r))
            kl = p * (log_expit(r) - log_expit(a)) + q * (log_expit(-r) - log_expit(-a))
        else:
            log_p = log_softmax(r, axis=1)
            kl = np.exp(log_p) * (log_p - log_softmax(a, axis=1))
        return cls(np.maximum(kl.sum(axis=1), 0.0), np.minimum(cosine, 1.0), absolute, answered)

    def _finite(self, values: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        return None if values is None or not self.answered.any() else values[self.answered]

    def mean(
        self, values: NDArray[np.float64] | None, group: Ids, seed: int
    ) -> tuple[float | None, float | None, float | None]:
        """Mean over the answered items and the ends of its interval."""
        finite = self._finite(values)
        if finite is None:
            return None, None, None
        return _mean(finite, group[self.answered], seed)

    def max(self, values: NDArray[np.float64] | None) -> float | None:
        """Largest of the answered items."""
        finite = self._finite(values)
        return None if finite is None else float(finite.max())

    def min(self, values: NDArray[np.float64] | None) -> float | None:
        """Smallest of the answered items."""
        finite = self._finite(values)
        return None if finite is None else float(finite.min())


def _mean(values: NDArray[Any], group: Ids, seed: int) -> tuple[float, float, float]:
    """Mean of items and the ends of its bootstrap interval."""
    _, rows = np.unique(group, return_inverse=True)
    sums = np.stack([np.bincount(rows, weights=values), np.bincount(rows)], axis=1)
    point = float(values.mean())
    low, high = quantiles(
        sums.astype(np.float64),
        np.ones(len(sums), np.int64),
        lambda sums: sums[None, ..., 0] / sums[None, ..., 1],
        (intervals.TAIL, 1 - intervals.TAIL),
        seed,
    )[:, 0]
    return point, min(float(low), point), max(float(high), point)


def mean_share(hits: NDArray[np.bool_], group: Ids, seed: int) -> tuple[float, float, float]:
    """Share of items and the ends of its interval; words of one row are no independent items."""
    rows = len(np.unique(group))
    if rows == len(hits):
        return float(hits.mean()), *intervals.share(int(hits.sum()), rows)
    point, low, high = _mean(hits, group, seed)
    return point, min(low, 1 - intervals.unseen(rows)) if point == 1 else low, high
