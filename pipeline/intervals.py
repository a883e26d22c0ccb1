"""Intervals in closed form, for figures of which a bootstrap of few or equal rows says too little.

Sources: Wilson, JASA 22, 1927 (a share); Tango, Statistics in Medicine 17, 1998 (the difference of
two shares of the same rows); Zou, Psychological Methods 12, 2007 (the difference of two
correlations with the same variable); Bonett and Wright, Psychometrika 65, 2000 (the variance of
Spearman's).
"""

import math

from scipy.optimize import brentq
from scipy.stats import norm

Interval = tuple[float, float]
TAIL = 0.025  # on either side, of a 95 % interval


def share(hits: float, rows: int, tail: float = TAIL) -> Interval:
    """Interval of a share of `rows` (Wilson's score interval)."""
    if not rows:
        return 0.0, 1.0
    z = float(norm.isf(tail))
    observed, spread = hits / rows, z * z / rows
    center = (observed + spread / 2) / (1 + spread)
    half = math.sqrt(spread * observed * (1 - observed) + spread**2 / 4) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


def paired_difference(lost: int, won: int, rows: int, tail: float = TAIL) -> Interval:
    """Interval of the share of rows lost less the share won (Tango's score interval).

    It holds for few and for no rows lost or won, where a bootstrap gives an interval of width 0.

    Args:
        lost: rows that only the reference had right.
        won: rows that only the artifact had right.
        rows: all rows.
        tail: probability left out on either side.
    """
    z = float(norm.isf(tail))

    def score(difference: float) -> float:
        # The most likely share of rows won where the difference is as given.
        a = 2 * rows
        b = -lost - won + (a - lost + won) * difference
        c = -won * difference * (1 - difference)
        won_share = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
        variance = rows * (2 * won_share + difference * (1 - difference))
        distance = lost - won - rows * difference
        if variance <= 0:
            return 0.0 if distance == 0 else math.copysign(math.inf, distance)
        return distance / math.sqrt(variance)

    observed = (lost - won) / rows

    def end(beyond: float, limit: float) -> float:
        if (score(limit) - beyond) * (score(observed) - beyond) >= 0:
            return limit
        return float(brentq(lambda x: max(-1e9, min(1e9, score(x))) - beyond, limit, observed))

    return end(z, -1.0), end(-z, 1.0)


def correlation(r: float, rows: int, tail: float = TAIL, ranks: bool = True) -> Interval:
    """Interval of a correlation by Fisher's z.

    Args:
        r: the correlation, inside -1 to 1.
        rows: more than 3.
        tail: probability left out on either side.
        ranks: Spearman's, of which z varies more than of Pearson's.
    """
    variance = (1 + r * r / 2 if ranks else 1.0) / (rows - 3)
    half = float(norm.isf(tail)) * math.sqrt(variance)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def correlation_difference(
    reference: float,
    artifact: float,
    between: float,
    rows: int,
    tail: float = TAIL,
    ranks: bool = True,
) -> Interval:
    """Interval of `reference - artifact`, two correlations with the same expected values.

    Args:
        reference: correlation of the reference with what was expected.
        artifact: the same of the artifact.
        between: correlation of reference and artifact: near 1 they move together.
        rows: more than 3.
        tail: probability left out on either side.
        ranks: whether the correlations are Spearman's.
    """
    low_r, high_r = correlation(reference, rows, tail, ranks)
    low_a, high_a = correlation(artifact, rows, tail, ranks)
    rr, aa, bb = reference**2, artifact**2, between**2
    dependence = ((between - reference * artifact / 2) * (1 - rr - aa - bb) + between**3) / (
        (1 - rr) * (1 - aa)
    )

    def half(x: float, y: float) -> float:
        return math.sqrt(max(0.0, x * x + y * y - 2 * dependence * x * y))

    drop = reference - artifact
    low = drop - half(reference - low_r, high_a - artifact)
    return low, drop + half(high_r - reference, artifact - low_a)


def unseen(rows: int, tail: float = TAIL) -> float:
    """Upper bound of the share of rows of a kind that none of `rows` was ("rule of three")."""
    return float(1 - tail ** (1 / rows))


def half_width(observed: float, rows: int) -> float:
    """Half of the 95 % interval of one share measured on so many rows (normal approximation)."""
    return 1.96 * math.sqrt(observed * (1 - observed) / rows)
