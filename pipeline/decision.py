"""Whether a drop is below its limit: a test of non-inferiority, at the limit as the margin.

The drop is below the limit with 95 % confidence where the one-sided upper bound is (Piaggio et al.,
JAMA 308, 2012), above it where the lower bound is; between the two the rows cannot tell.
"""

import math
from dataclasses import dataclass

from scipy.stats import norm

from edgebert.pipeline.drift import Verdict
from edgebert.pipeline.findings import MetricDrift
from edgebert.pipeline.intervals import unseen
from edgebert.pipeline.metric_drift import BOUND_TAIL

POWER = 0.8  # chance that so many rows as are advised will tell
MOST_ROWS = 1_000_000  # more are not advised: the drop is at the limit itself


@dataclass(frozen=True)
class Decision:
    """What the rows say of a limit.

    Attributes:
        verdict: `below` or `above` the limit with 95 % confidence, or `cannot tell`.
        rows_needed: about how many rows would tell; None where these do, or where no number would.
        text: for people.
    """

    verdict: Verdict
    rows_needed: int | None
    text: str


def decide(metric: MetricDrift, rows: int, limit: float) -> Decision:
    """Hold a drop against a limit.

    Args:
        metric: the drop with its bounds.
        rows: rows that it was measured on.
        limit: largest drop, in the metric's own units.
    """
    if metric.drop_at_most <= limit:
        return Decision("below", None, "the drop is below the limit with 95 % confidence")
    if metric.drop_at_least > limit:
        return Decision("above", None, "the drop is above the limit with 95 % confidence")
    needed = rows_that_tell(metric, rows, limit)
    text = f"cannot tell with n = {rows} whether the drop is below the limit"
    if unseen(rows, BOUND_TAIL) > limit:
        text += f" (it is finer than {rows} rows can show; one row is {1 / rows:.2g})"
    else:
        text += f" (it may be up to {metric.drop_at_most:.4f})"
    advice = "no number of rows would tell" if needed is None else f"about {needed} rows would tell"
    return Decision("cannot tell", needed, f"{text}; {advice}")


def rows_that_tell(metric: MetricDrift, rows: int, limit: float) -> int | None:
    """Rows on which a drop like this one would be told from the limit, four times of five.

    Returns:
        None where it is over a million: the drop is the limit, as far as anybody will see.
    """
    z = float(norm.isf(BOUND_TAIL))
    width = metric.drop_at_most - metric.drop_at_least
    # Of the drop on these rows; where no row changed the bounds are the rule of three's alone.
    deviation = 0.0 if width <= 2.001 * unseen(rows, BOUND_TAIL) else width / (2 * z)
    distance = abs(limit - metric.drop)
    if limit <= 0 or distance == 0:
        return None
    needed = rows * ((z + float(norm.ppf(POWER))) * deviation / distance) ** 2
    if metric.drop <= limit:  # even where nothing changes at all
        needed = max(needed, math.log(BOUND_TAIL) / math.log1p(-limit))
    return None if needed > MOST_ROWS else _rounded(max(needed, rows + 1))


def _rounded(value: float) -> int:
    """Up to two significant digits; the third is no knowledge."""
    unit: int = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
