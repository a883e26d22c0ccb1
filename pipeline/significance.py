"""Tests of paired answers, exact for any number of rows, and their correction for many of them.

Sources: McNemar, Psychometrika 12, 1947; Benjamini and Hochberg, JRSS B 57, 1995.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, binomtest, false_discovery_control

from edgebert.pipeline.findings import McNemar

ALPHA = 0.05


def changed_rows(reference: NDArray[np.bool_], artifact: NDArray[np.bool_]) -> McNemar:
    """How many rows changed sides, and whether by chance.

    Args:
        reference: rows that the reference has right, bool [rows].
        artifact: rows that the artifact has right.
    """
    lost, won = int((reference & ~artifact).sum()), int((artifact & ~reference).sum())
    return McNemar(lost=lost, won=won, p_value=mcnemar(lost, won))


def mcnemar(lost: int, won: int) -> float:
    """How likely so uneven a split of the changed rows is by chance (exact, two-sided).

    Args:
        lost: rows that only the reference had right.
        won: rows that only the artifact had right.
    """
    return float(binomtest(lost, lost + won).pvalue) if lost + won else 1.0


def loss_p_value(lost: int, won: int) -> float:
    """The same for a loss alone: at least so many of the changed rows lost (one-sided)."""
    return float(binom.sf(lost - 1, lost + won, 0.5)) if lost + won else 1.0


def adjusted(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, Benjamini-Hochberg.

    Of what is called significant at 0.05 one in twenty is a false alarm, in the long run. The rows
    of one label are no other label's, so that the tests are independent, as the procedure wants.
    """
    return [float(p) for p in false_discovery_control(p_values)] if p_values else []
