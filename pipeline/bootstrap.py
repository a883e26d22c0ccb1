"""Paired bootstrap of metrics that are functions of sums over rows.

A resample is then one row of a matrix product, `weights [resamples, rows] @ statistics [rows, k]`.
Source: percentile bootstrap, Efron and Tibshirani, An Introduction to the Bootstrap, 1993.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
RESAMPLES = 2000
_CHUNK_CELLS = 2_000_000  # resamples x rows of one matrix product; bounds memory


def quantiles(
    statistics: Floats,
    counts: Ids,
    figures: Callable[[Floats], Floats],
    shares: Sequence[float],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Floats:
    """Quantiles of each figure over resampled rows; they do not depend on the order of the rows.

    Args:
        statistics: what is summed, [rows, k].
        counts: how many times each row counts, [rows].
        figures: from sums [..., k] to figures [figures, ...].
        shares: which quantiles, of 0 to 1.
        seed: of the resamples.
        resamples: how many.

    Returns:
        The quantiles, [shares, figures].
    """
    statistics, counts = _merge(statistics, counts)
    sampled = [figures(weights @ statistics) for weights in _resample(counts, resamples, seed)]
    return np.asarray(np.quantile(np.concatenate(sampled, axis=1), shares, axis=1))


def _merge(statistics: Floats, counts: Ids) -> tuple[Floats, Ids]:
    """Equal rows once, in an order that does not depend on the order given."""
    raw = np.ascontiguousarray(statistics).view(np.dtype((np.void, statistics[0].nbytes)))[:, 0]
    _, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
    return statistics[first], np.bincount(inverse, weights=counts).astype(np.int64)


def _resample(counts: Ids, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield weights float64 [chunk, rows]: how often each row is drawn."""
    generator = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(counts)), counts)
    step = max(1, _CHUNK_CELLS // len(rows))
    for start in range(0, resamples, step):
        chunk = min(step, resamples - start)
        drawn = rows[generator.integers(len(rows), size=(chunk, len(rows)))]
        cells = drawn + np.arange(chunk)[:, None] * len(counts)
        weights = np.bincount(cells.ravel(), minlength=chunk * len(counts))
        yield weights.reshape(chunk, len(counts)).astype(np.float64)
