"""Compare the logits of a checkpoint with those of an artifact: one drift report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebert.calibration.dataset import Row, Split
from edgebert.calibration.labels import IGNORED, match_labels
from edgebert.pipeline import intervals
from edgebert.pipeline.artifact import Task
from edgebert.pipeline.chance import chance_notes
from edgebert.pipeline.confidence import measure_confidence
from edgebert.pipeline.distances import Distances, mean_share
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.findings import Disagreement
from edgebert.pipeline.label_drift import confusion_changes, label_table, out_of_scope
from edgebert.pipeline.metric_drift import measure_metrics
from edgebert.pipeline.metrics import Predictions
from edgebert.pipeline.significance import changed_rows
from edgebert.pipeline.slices import measure_slices
from edgebert.targets.errors import InputError

WORST = 20  # disagreements that a report lists
ROUNDING = 1e-6  # nats, or units of a regression: no difference that anybody means
# Primary metrics for which `half_width` holds: shares of rows.
_SHARES = ("accuracy",)


@dataclass(frozen=True)
class Conditions:
    """Under which a comparison was made; the fields of `DriftReport` of the same names.

    Attributes:
        tokens: index of a row in its split -> its length in tokens, for slices.
    """

    split: Split
    runtime: str
    machine: str
    padding: str
    truncated: int = 0
    notes: tuple[str, ...] = ()
    tokens: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Logits:
    """Logits of rows, or of the words of rows.

    Attributes:
        values: float32 [items, labels].
        row: index of each item's row in its split, int64 [items], ascending.
        word: index of each item's word in its row, int64 [items]; 0 where a row is one item.
    """

    values: NDArray[np.float32]
    row: NDArray[np.int64]
    word: NDArray[np.int64]

    def select(self, keep: NDArray[Any]) -> "Logits":
        """Some of the items."""
        return Logits(self.values[keep], self.row[keep], self.word[keep])


def compute_drift(
    task: Task,
    labels: Sequence[str],
    rows: Sequence[Row],
    reference: Logits,
    artifact: Logits,
    conditions: Conditions,
    seed: int = 0,
) -> DriftReport:
    """Compare an artifact's logits with the checkpoint's.

    Args:
        task: what the head is for.
        labels: the model's label names in the order of their ids.
        rows: the whole split; the logits' `row` points into it.
        reference: fp32 logits of the checkpoint.
        artifact: logits of the artifact, for the same items; items that only one side has (words
            that a shorter length cut off) are left out with a note.
        conditions: what the report says of the run.
        seed: of the bootstrap.

    Raises:
        InputError: labels that do not match, nothing to compare, or reference logits that are not
            finite.
    """
    reference, artifact, notes = _align(reference, artifact)
    indices, group = np.unique(reference.row, return_inverse=True)
    measured = [rows[index] for index in indices]
    targets = match_labels(measured, labels, task)
    expected = targets.values
    if task == "token":
        starts = np.cumsum([0, *(len(row.tokens) for row in measured)])[:-1]
        expected = expected[starts[group] + reference.word]
        counted = expected != IGNORED
        reference, artifact = reference.select(counted), artifact.select(counted)
        expected, group = expected[counted], group[counted]
    if not len(expected):
        raise InputError("0 usable rows to measure drift on", f"split {conditions.split}")
    if not np.isfinite(reference.values).all():
        raise InputError(
            "the checkpoint's own fp32 logits are not finite", "", "train or load it again"
        )
    if task == "regression" and reference.values.shape[1] != 1:
        raise InputError("regression with several outputs is not measured", "", "give one output")
    answered: NDArray[np.bool_] = np.asarray(np.isfinite(artifact.values).all(axis=1))
    said = [_decide(task, logits.values) for logits in (reference, artifact)]
    said[1] = _silence(task, said[1], answered, len(labels))
    predictions = Predictions(
        task, expected, said[0], said[1], answered, group.astype(np.int64), len(labels)
    )
    metrics = measure_metrics(predictions, seed)
    same = (said[0] == said[1]).reshape(len(answered), -1).all(axis=1) & answered
    distances = Distances.of(task, reference.values, artifact.values, answered)
    nonfinite = len(np.unique(group[~answered]))
    if nonfinite:
        notes.append(f"{nonfinite} of {len(measured)} rows have NaN or infinite logits")
    resolution = f"one row is {1 / len(measured):.3%} of {len(measured)}"
    if metrics[0].name in _SHARES and task == "single_label":
        width = intervals.half_width(metrics[0].reference, len(measured))
        resolution += f"; the 95 % half-width of {metrics[0].name} at this size is {width:.2%}"
    if task == "single_label":
        notes += chance_notes(expected, said[0], labels)
    text = _Text(task, labels, measured, group, reference.word)
    kl_mean, kl_low, kl_high = distances.mean(distances.kl, group, seed)
    cosine_mean, cosine_low, cosine_high = distances.mean(distances.cosine, group, seed)
    classes = task != "regression"
    agreement = mean_share(same, group, seed) if classes else (None, None, None)
    lengths = np.array([conditions.tokens.get(int(index), 0) for index in indices])
    return DriftReport(
        task=task,
        split=conditions.split,
        rows=len(measured),
        truncated=conditions.truncated,
        runtime=conditions.runtime,
        machine=conditions.machine,
        padding=conditions.padding,
        metrics=metrics,
        agreement=agreement[0],
        agreement_low=agreement[1],
        agreement_high=agreement[2],
        kl_mean=kl_mean,
        kl_mean_low=kl_low,
        kl_mean_high=kl_high,
        kl_max=distances.max(distances.kl),
        cosine_mean=cosine_mean,
        cosine_mean_low=cosine_low,
        cosine_mean_high=cosine_high,
        cosine_min=distances.min(distances.cosine),
        max_abs_logit=distances.max(distances.absolute),
        nonfinite_rows=nonfinite,
        mcnemar=changed_rows(*predictions.right()) if classes else None,
        labels=label_table(predictions, labels) if classes else (),
        confusions=confusion_changes(predictions, labels),
        out_of_scope=out_of_scope(predictions, labels),
        confidence=measure_confidence(predictions, reference.values, artifact.values, seed),
        slices=measure_slices(predictions, measured, lengths, same, seed),
        worst=_worst(text, predictions, same, distances),
        notes=(*conditions.notes, *targets.notes, *notes, resolution),
    )


def _align(reference: Logits, artifact: Logits) -> tuple[Logits, Logits, list[str]]:
    """The items that both sides have, in the same order."""
    ours, theirs = (logits.row << 32 | logits.word for logits in (reference, artifact))
    _, first, second = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    left_out = max(len(ours), len(theirs)) - len(first)
    notes = [f"{left_out} words were cut off and are not compared"] if left_out else []
    return reference.select(first), artifact.select(second), notes


def _decide(task: Task, logits: NDArray[np.float32]) -> NDArray[Any]:
    if task == "regression":
        return logits[:, 0].astype(np.float64)
    if task == "multi_label":
        return np.asarray(logits >= 0)  # sigmoid of one half or more
    return np.asarray(logits.argmax(axis=1))


def _silence(
    task: Task, said: NDArray[Any], answered: NDArray[np.bool_], width: int
) -> NDArray[Any]:
    """Where logits are not finite nothing was said: no label, which is always wrong."""
    nothing = {"regression": np.nan, "multi_label": False}.get(task, width)
    said[~answered] = nothing
    return said


@dataclass(frozen=True)
class _Text:
    """Names items and what was said of them."""

    task: Task
    labels: Sequence[str]
    rows: Sequence[Row]
    group: NDArray[np.int64]
    word: NDArray[np.int64]

    def item(self, index: int) -> str:
        row = self.rows[self.group[index]]
        if self.task == "token":
            return f"{row.tokens[self.word[index]]} | {row.text}"
        return row.text if row.text_pair is None else f"{row.text} | {row.text_pair}"

    def said(self, value: Any) -> str:
        if self.task == "regression":
            return f"{value:.4g}"
        if self.task == "multi_label":
            return ", ".join(self.labels[int(i)] for i in np.flatnonzero(value)) or "none"
        return self.labels[value] if value < len(self.labels) else "not finite"


def _worst(
    text: _Text, predictions: Predictions, same: NDArray[np.bool_], distances: Distances
) -> tuple[Disagreement, ...]:
    """The items that differ most: no answer first, then another label, then by distance."""
    answered = distances.answered
    distance = distances.absolute if distances.kl is None else distances.kl
    other = np.zeros(len(same)) if predictions.task == "regression" else ~same
    order = np.lexsort((-distance, -1.0 * other, answered))[:WORST]
    return tuple(
        Disagreement(
            text=text.item(i),
            expected=text.said(predictions.expected[i]),
            reference=text.said(predictions.reference[i]),
            artifact=text.said(predictions.artifact[i]) if answered[i] else "not finite",
            kl=None if distances.kl is None or not answered[i] else float(distances.kl[i]),
        )
        for i in order
        if distance[i] > ROUNDING or not answered[i]
    )
