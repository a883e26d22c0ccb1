"""A checkpoint that is no better than a constant answer: its labels are not those of the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def chance_notes(
    expected: NDArray[Any], answered: NDArray[Any], labels: Sequence[str]
) -> tuple[str, ...]:
    """A note where the checkpoint's own answers are no better than always giving one label.

    Drift cannot show it, since the artifact is wrong in the same way: labels in another order than
    the model was trained with, or another tokenizer than its own.

    Args:
        expected: label ids of the data, [rows].
        answered: label ids of the checkpoint, [rows].
        labels: their names.
    """
    ids, counts = np.unique(expected, return_counts=True)
    right, constant = float(np.mean(expected == answered)), counts.max() / len(expected)
    if len(ids) < 2 or right > constant:
        return ()
    name = labels[int(ids[counts.argmax()])]
    return (
        f"the checkpoint itself answers {right:.1%} of the rows right, no better than always "
        f"'{name}' ({constant:.1%}): are its labels in the order that it was trained with, and is "
        "the tokenizer its own?",
    )
