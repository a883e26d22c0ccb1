"""Drift: what compression changed, on the runtime that ships, against the fp32 checkpoint.

These are the typed results; `metrics.py` and `comparison.py` compute them, `stages/validate.py`
fills them, `report.py` shows them. Every metric is in its own units (accuracy 0.97, never 97),
every drop is reference minus artifact, so that a positive drop is a loss; for an error (`mae`) it
is artifact minus reference, to the same effect.
"""

from pydantic import BaseModel, ConfigDict

from edgebert.calibration.dataset import Split
from edgebert.pipeline.artifact import Task


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)


class MetricDrift(_Result):
    """One metric before and after, with the 95 % paired bootstrap interval of the drop."""

    name: str
    reference: float
    artifact: float
    drop: float
    drop_low: float
    drop_high: float


class LabelDrift(_Result):
    """One label: its rows, and recall and F1 before and after."""

    label: str
    rows: int
    reference_recall: float
    artifact_recall: float
    reference_f1: float
    artifact_f1: float


class Disagreement(_Result):
    """A text on which the artifact differs most from the checkpoint.

    Attributes:
        text: the text; for a token `word | text`.
        expected, reference, artifact: label names, or numbers of a regression.
        kl: KL(reference || artifact) in nats; None for regression and where the artifact's logits
            are not finite.
    """

    text: str
    expected: str
    reference: str
    artifact: str
    kl: float | None


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
        cosine_mean, cosine_min: of the logits per row; None for regression.
        max_abs_logit: largest difference of a logit; None where no row has finite ones.
        nonfinite_rows: rows for which the artifact gave NaN or infinite logits; they count as wrong
            in the metrics and are left out of KL, cosine and max_abs_logit.
        labels: per label, most rows first; empty for regression.
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
    kl_mean: float | None = None
    kl_max: float | None = None
    cosine_mean: float | None = None
    cosine_min: float | None = None
    max_abs_logit: float | None
    nonfinite_rows: int = 0
    labels: tuple[LabelDrift, ...] = ()
    worst: tuple[Disagreement, ...] = ()
    notes: tuple[str, ...] = ()


class Gate(_Result):
    """One limit and whether it holds.

    Attributes:
        name: `drift`, `size` or `latency`, with the format it is about: `drift (onnx)`.
        value, limit, unit: what was measured, what is allowed, and in what.
        passed: value <= limit; for drift also that every logit is finite.
        message: one line for people: gate, value, limit, and what the data can show.
    """

    name: str
    value: float
    limit: float
    unit: str
    passed: bool
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
