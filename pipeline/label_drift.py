"""What changed label by label: recall, confusions, and texts that no label is meant for."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebert.pipeline import intervals
from edgebert.pipeline.findings import ConfusionChange, LabelDrift, OutOfScope
from edgebert.pipeline.metric_drift import share_drift
from edgebert.pipeline.metrics import Predictions, f1, label_counts
from edgebert.pipeline.significance import ALPHA, adjusted, loss_p_value

CONFUSIONS = 20  # pairs that a report lists
# What models call the label for texts that none of their labels is meant for.
OUT_OF_SCOPE_NAMES = {"oos", "ood", "outofscope", "outofdomain"}


def label_table(predictions: Predictions, labels: Sequence[str]) -> tuple[LabelDrift, ...]:
    """Recall and F1 of every label that the rows have, and whether its recall regressed.

    Args:
        predictions: not of a regression.
        labels: names in the order of their ids.
    """
    counts = label_counts(predictions)
    width = len(labels)
    lost, won = _changed(predictions, width)
    present = sorted((i for i in range(width) if counts.true[i]), key=lambda i: -counts.true[i])
    p_values = adjusted([loss_p_value(int(lost[i]), int(won[i])) for i in present])
    scores = [
        f1(counts.true, counts.reference[:width], counts.reference_hit),
        f1(counts.true, counts.artifact[:width], counts.artifact_hit),
    ]
    table = []
    for i, p_value in zip(present, p_values, strict=True):
        rows = int(counts.true[i])
        hits = float(counts.reference_hit[i]), float(counts.artifact_hit[i])
        ends = [intervals.share(hit, rows) for hit in hits]
        table.append(
            LabelDrift(
                label=labels[i],
                rows=rows,
                reference_recall=hits[0] / rows,
                reference_recall_low=ends[0][0],
                reference_recall_high=ends[0][1],
                artifact_recall=hits[1] / rows,
                artifact_recall_low=ends[1][0],
                artifact_recall_high=ends[1][1],
                reference_f1=float(scores[0][i]),
                artifact_f1=float(scores[1][i]),
                lost=int(lost[i]),
                won=int(won[i]),
                p_adjusted=p_value,
                regressed=p_value < ALPHA,
            )
        )
    return tuple(table)


def _changed(predictions: Predictions, width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Items of each label that only the reference, and that only the artifact, found."""
    if predictions.task == "multi_label":
        had, reference, artifact = (
            predictions.expected,
            predictions.reference,
            predictions.artifact & predictions.answered[:, None],
        )
        lost, won = (had & reference & ~artifact), (had & ~reference & artifact)
        return lost.sum(axis=0), won.sum(axis=0)
    expected = predictions.expected
    right = predictions.reference == expected, predictions.artifact == expected
    return (
        np.bincount(expected[right[0] & ~right[1]], minlength=width),
        np.bincount(expected[right[1] & ~right[0]], minlength=width),
    )


def confusion_changes(
    predictions: Predictions, labels: Sequence[str]
) -> tuple[ConfusionChange, ...]:
    """The confusions (what was right, what was said instead) whose number changed most."""
    if predictions.task in ("regression", "multi_label"):
        return ()
    names = [*labels, "not finite"]
    sides = []
    for said in (predictions.reference, predictions.artifact):
        wrong = said != predictions.expected
        pairs = zip(predictions.expected[wrong].tolist(), said[wrong].tolist(), strict=True)
        sides.append(Counter(pairs))
    reference, artifact = sides
    changed = [pair for pair in reference | artifact if reference[pair] != artifact[pair]]
    changed.sort(key=lambda pair: (-abs(artifact[pair] - reference[pair]), pair))
    return tuple(
        ConfusionChange(
            expected=names[pair[0]],
            said=names[pair[1]],
            reference=reference[pair],
            artifact=artifact[pair],
        )
        for pair in changed[:CONFUSIONS]
    )


def out_of_scope(predictions: Predictions, labels: Sequence[str]) -> OutOfScope | None:
    """How texts out of scope are found; None where the model has no such label, or no such row."""
    known = [re.sub(r"[\W_]", "", name.casefold()) in OUT_OF_SCOPE_NAMES for name in labels]
    if predictions.task != "single_label" or sum(known) != 1:
        return None
    index = known.index(True)
    meant = predictions.expected == index
    if meant.all() or not meant.any():
        return None
    reference, artifact = predictions.reference == index, predictions.artifact == index
    return OutOfScope(
        label=labels[index],
        rows=int(meant.sum()),
        found=share_drift("recall", reference[meant], artifact[meant]),
        wrongly_refused=share_drift(
            "wrongly refused", reference[~meant], artifact[~meant], error=True
        ),
    )
