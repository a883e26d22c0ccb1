"""Drift: what compression changed, on the runtime that ships, against the fp32 checkpoint.

These are the typed results, made of `findings.py`; `metrics.py` and `comparison.py` compute them,
`stages/validate.py` fills them, `report.py` shows them. Every metric is in its own units (accuracy
0.97, never 97), every drop is reference minus artifact, so that a positive drop is a loss; for an
error (`mae`) it is artifact minus reference, to the same effect. Every interval is of 95 %.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from edgebert.calibration.dataset import Split
from edgebert.pipeline.artifact import Task
from edgebert.pipeline.findings import (
    ConfidenceDrift,
    ConfusionChange,
    Disagreement,
    LabelDrift,
    McNemar,
    MetricDrift,
    OutOfScope,
    PaddingChange,
    Slice,
)


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)


class DriftReport(_Result):
    """The drift of one model file on one split.

    Attributes:
        split: `dev` (choices) or `test` (the verdict).
        rows: rows measured; `truncated` of them were longer than the model takes.
        runtime: name and version of the runtime that ran the artifact.
        machine: what it ran on.
        padding: how rows were padded, in words.
        metrics: the first is the one that the drift gate judges.
        agreement: share of rows (token: of words) with the same label; None for regression.
        kl_mean, kl_max: KL(reference || artifact) of the probabilities in nats; None for
            regression.
        kl_mean_low, kl_mean_high, agreement_low, agreement_high: ends of their intervals.
        cosine_mean, cosine_min: of the logits per row; None for regression.
        cosine_mean_low, cosine_mean_high: ends of its interval.
        max_abs_logit: largest difference of a logit; None where no row has finite ones.
        nonfinite_rows: rows for which the artifact gave NaN or infinite logits; they count as wrong
            in the metrics and are left out of KL, cosine and max_abs_logit.
        mcnemar: rows that changed sides; None for regression.
        labels: per label, most rows first; empty for regression.
        confusions: the pairs of labels whose number of confusions changed most.
        out_of_scope: where the model has a label for it.
        confidence: calibration of the confidence; None for regression.
        slices: by length, and by language or script where there are several.
        padding_change: on test rows that ran on this machine; None elsewhere.
        worst: largest disagreements first.
        notes: what a reader must know: a limit finer than the data can show, rows left out, ...
    """

    task: Task
    split: Split
    rows: int
    truncated: int = 0
    runtime: str
    machine: str
    padding: str
    metrics: tuple[MetricDrift, ...]
    agreement: float | None = None
    agreement_low: float | None = None
    agreement_high: float | None = None
    kl_mean: float | None = None
    kl_mean_low: float | None = None
    kl_mean_high: float | None = None
    kl_max: float | None = None
    cosine_mean: float | None = None
    cosine_mean_low: float | None = None
    cosine_mean_high: float | None = None
    cosine_min: float | None = None
    max_abs_logit: float | None
    nonfinite_rows: int = 0
    mcnemar: McNemar | None = None
    labels: tuple[LabelDrift, ...] = ()
    confusions: tuple[ConfusionChange, ...] = ()
    out_of_scope: OutOfScope | None = None
    confidence: ConfidenceDrift | None = None
    slices: tuple[Slice, ...] = ()
    padding_change: PaddingChange | None = None
    worst: tuple[Disagreement, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def losses(self) -> tuple[str, ...]:
        """What got worse by more than chance explains, besides the metrics; a line each."""
        lines = []
        if labels := [one.label for one in self.labels if one.regressed]:
            more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
            lines.append(f"{len(labels)} labels regressed: {', '.join(labels[:5])}{more}")
        lines += [
            f"{one.kind} {one.name} regressed: {one.metric.name} {one.metric.reference:.4f} -> "
            f"{one.metric.artifact:.4f} on {one.rows} rows"
            for one in self.slices
            if one.regressed
        ]
        if self.out_of_scope and self.out_of_scope.found.drop_low > 0:
            found = self.out_of_scope.found
            lines.append(
                f"texts out of scope are found less often: recall of {self.out_of_scope.label} "
                f"{found.reference:.4f} -> {found.artifact:.4f}"
            )
        if self.confidence and self.confidence.ece.drop_low > 0:
            ece = self.confidence.ece
            lines.append(
                f"confidence is less to be trusted: calibration error {ece.reference:.4f} -> "
                f"{ece.artifact:.4f}"
            )
        return tuple(lines)

    def without_texts(self) -> "DriftReport":
        """The same without a text of the user's; their labels stay."""
        worst = tuple(one.model_copy(update={"text": ""}) for one in self.worst)
        return self.model_copy(update={"worst": worst})


Verdict = Literal["below", "cannot tell", "above"]


class Gate(_Result):
    """One limit and whether it holds.

    Attributes:
        name: `drift`, `size` or `latency`, with the format it is about: `drift (onnx)`.
        value, limit, unit: what was measured, what is allowed, and in what.
        passed: value <= limit; for drift also that every logit is finite, and where it is demanded
            that the drop is below the limit with 95 % confidence.
        verdict: of drift: whether the drop is below or above the limit with 95 % confidence, or
            the rows cannot tell.
        rows_needed: about how many rows would tell; None where they do, or where no number would.
        message: one line for people: gate, value, limit, and what the data can show.
    """

    name: str
    value: float
    limit: float
    unit: str
    passed: bool
    verdict: Verdict | None = None
    rows_needed: int | None = None
    message: str


class LayerSensitivity(_Result):
    """What quantizing one layer alone does to the logits of dev texts.

    Attributes:
        layer: the checkpoint's name of it.
        parameters: elements of its matrix.
        uses: how often the model runs it; more than 1 where depths share it.
        snr_db: power of the logits over that of their error in dB; the lower, the costlier.
    """

    layer: str
    parameters: int
    uses: int
    snr_db: float


class Trial(_Result):
    """A scheme that was tried: its size, speed and drift on the dev rows.

    Attributes:
        latency_ratio: median latency of the fp32 file over that of this one, same run; None if
            not run.
        drift: None where the scheme could not be built; `failure` says why.
        kept: whether it is the one that ships.
        failure: why it could not be built, or could not hold the limits.
        fp32_layers: layers that are left in fp32.
        sensitivity: what every layer costs in this scheme, costliest first, where it was measured.
    """

    format: str
    scheme: str
    size_mb: float | None = None
    latency_ratio: float | None = None
    drift: DriftReport | None = None
    kept: bool = False
    failure: str = ""
    fp32_layers: tuple[str, ...] = ()
    sensitivity: tuple[LayerSensitivity, ...] = ()
