"""Compare a teacher with its student: the same rows, each read with its own tokenizer."""

from collections.abc import Sequence

import numpy as np
import torch

from edgebert.calibration import Dataset, Row, Split
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.comparison import Conditions, Logits, compute_drift
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.runtimes.run import machine
from edgebert.pipeline.stages.distillation_loss import match_columns
from edgebert.pipeline.stages.reference import encode_rows, run_torch


def compare(teacher: Checkpoint, student: Checkpoint, data: Dataset) -> DriftReport | None:
    """Teacher (reference) and student (artifact) on the test rows, or on dev where there are none.

    Returns:
        None where the data has neither.

    Raises:
        InputError: the labels differ, or the teacher's logits are not finite.
    """
    split: Split = "test" if data.test else "dev"
    rows = data.split(split)
    if not rows:
        return None
    columns = match_columns(student.labels, teacher.labels)
    reference, _ = _logits(teacher, rows)
    artifact, truncated = _logits(student, rows)
    conditions = Conditions(
        split=split,
        runtime=f"torch {torch.__version__}",
        machine=machine(),
        padding="none",
        truncated=truncated,
    )
    reference = Logits(reference.values[:, columns], reference.row, reference.word)
    return compute_drift(student.task, student.labels, rows, reference, artifact, conditions)


def _logits(checkpoint: Checkpoint, rows: Sequence[Row]) -> tuple[Logits, int]:
    """Logits of the rows, and how many were too long for the model."""
    encoded = encode_rows(checkpoint.tokenizer, rows, checkpoint.max_length)
    index = np.arange(len(rows))
    values = np.stack(run_torch(checkpoint, encoded)).astype(np.float32)
    return Logits(values, index, np.zeros_like(index)), sum(row.truncated for row in encoded)
