"""What a comparison finds: the parts that a drift report is made of.

Every interval is of 95 %. A positive drop is a loss, of any metric.
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)


class MetricDrift(_Result):
    """One metric before and after, each with its interval.

    Attributes:
        name: of the metric.
        reference, artifact, drop: the figures; `_low` and `_high` are the ends of their intervals.
        drop_at_least, drop_at_most: one-sided bounds that the drop keeps with 95 % confidence each;
            a limit is held against them.
        method: how the intervals were found: `score` (shares of rows), `Fisher z` (correlations) or
            `bootstrap`, all of them paired.

    Raises:
        ValueError: a figure over 1 that is no error in units of the data: a percent.
    """

    name: str
    reference: float
    reference_low: float
    reference_high: float
    artifact: float
    artifact_low: float
    artifact_high: float
    drop: float
    drop_low: float
    drop_high: float
    drop_at_least: float
    drop_at_most: float
    method: Literal["score", "Fisher z", "bootstrap"]

    @model_validator(mode="after")
    def _no_percent(self) -> Self:
        for value in (self.reference, self.artifact):
            if self.name != "mae" and abs(value) > 1 + 1e-9:
                raise ValueError(f"{self.name} is {value:g}: give a fraction, not a percent")
        return self


class McNemar(_Result):
    """Rows that changed sides, and how likely so uneven a change is by chance (exact test).

    Attributes:
        lost: rows that only the reference has right (all labels, or all words, of a row).
        won: rows that only the artifact has right.
        p_value: two-sided.
    """

    lost: int
    won: int
    p_value: float


class LabelDrift(_Result):
    """One label: its rows, and recall and F1 before and after.

    Attributes:
        label: its name.
        rows: rows (token: words) that have it.
        lost, won: of these, found by the reference alone and by the artifact alone.
        p_adjusted: of the loss (McNemar, one-sided), corrected for the number of labels
            (Benjamini-Hochberg).
        regressed: whether it is below 0.05.
    """

    label: str
    rows: int
    reference_recall: float
    reference_recall_low: float
    reference_recall_high: float
    artifact_recall: float
    artifact_recall_low: float
    artifact_recall_high: float
    reference_f1: float
    artifact_f1: float
    lost: int
    won: int
    p_adjusted: float
    regressed: bool


class ConfusionChange(_Result):
    """How often one label is said where another is right, before and after."""

    expected: str
    said: str
    reference: int
    artifact: int


class OutOfScope(_Result):
    """The label for texts that none of the others is meant for.

    Attributes:
        found: recall of the label, before and after.
        wrongly_refused: share of the other labels' rows that are called out of scope; its drop is
            artifact minus reference, so that a positive one is a loss here too.
    """

    label: str
    rows: int
    found: MetricDrift
    wrongly_refused: MetricDrift


class ConfidenceBin(_Result):
    """Answers whose confidence is from `low` to `high`: how many, mean confidence, share right."""

    low: float
    high: float
    items: int
    confidence: float | None
    right: float | None


class ConfidenceDrift(_Result):
    """Whether a confidence of 0.9 is right nine times of ten, before and after.

    Attributes:
        ece: expected calibration error over the bins (Guo et al. 2017, arXiv:1706.04599); its drop
            is artifact minus reference, so that a positive one is a loss.
        reference, artifact: the bins, of equal width.
    """

    ece: MetricDrift
    reference: tuple[ConfidenceBin, ...]
    artifact: tuple[ConfidenceBin, ...]


class Slice(_Result):
    """Some of the rows, and the first metric on them.

    Attributes:
        kind: what they have in common; `length` is in tokens.
        name: of the group: `9-16`, `de`, `Cyrillic`.
        mcnemar: rows that changed sides; None for regression.
        p_adjusted, regressed: as in `LabelDrift`, corrected for the number of slices; None and
            False for regression.
    """

    kind: Literal["length", "language", "script"]
    name: str
    rows: int
    metric: MetricDrift
    agreement: float | None
    mcnemar: McNemar | None
    p_adjusted: float | None
    regressed: bool = False


class PaddingChange(_Result):
    """How much an answer depends on what is beside the text; of each, the largest over some rows.

    Attributes:
        rows: texts that were run again.
        tokens: the length that they were padded to.
        padded: change of a probability (regression: of the value) by that padding.
        batch_rows: texts in a batch.
        batch: change by running in a batch of that many; None for a file that takes one at a time.
    """

    rows: int
    tokens: int
    padded: float
    batch_rows: int
    batch: float | None


class Disagreement(_Result):
    """A text on which the artifact differs most from the checkpoint.

    Attributes:
        text: the text; for a token `word | text`; empty where texts are kept out.
        expected, reference, artifact: label names, or numbers of a regression.
        kl: KL(reference || artifact) in nats; None for regression and where the artifact's logits
            are not finite.
    """

    text: str
    expected: str
    reference: str
    artifact: str
    kl: float | None
