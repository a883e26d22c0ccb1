"""Whether padding or a neighbor in the batch changes an answer: the same texts, run both ways."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from edgebert.pipeline.artifact import Task
from edgebert.pipeline.findings import PaddingChange
from edgebert.pipeline.runtimes.run import Session

ROWS = 48  # texts that are run again
BATCH_ROWS = 8
ROUNDING = 1e-3  # of a probability: more is a change
TOKENS = 128  # that texts are padded to where a file takes any length

Row = tuple[list[int], list[int]]  # ids, type ids


def padding_change(
    session: Session, rows: Sequence[Row], task: Task, max_length: int
) -> PaddingChange | None:
    """Run texts padded, and in a batch, beside the same texts alone.

    Args:
        session: a loaded model file.
        rows: texts to take from, in their order.
        task: says what a probability is.
        max_length: longest input in tokens.

    Returns:
        None where no text is short enough to be padded, or none has an answer.
    """
    tokens = session.lengths[-1] if session.lengths else min(TOKENS, max_length)
    short = [row for row in rows if 0 < len(row[0]) < tokens]
    chosen = [short[i] for i in np.linspace(0, len(short) - 1, min(ROWS, len(short)), dtype=int)]
    answers = [_probabilities(task, session.logits(*row)) for row in chosen]
    finite = [i for i, answer in enumerate(answers) if np.isfinite(answer).all()]
    chosen, alone = [chosen[i] for i in finite], [answers[i] for i in finite]
    if not chosen:
        return None

    def change(batches: Sequence[Sequence[Row]], padded: int) -> float:
        values = [value for batch in batches for value in _run(session, batch, task, padded)]
        differences = [np.abs(a - b).max() for a, b in zip(alone, values, strict=True)]
        return float(np.nan_to_num(differences, nan=1.0).max())  # an answer that is lost

    batches = [chosen[i : i + BATCH_ROWS] for i in range(0, len(chosen), BATCH_ROWS)]
    return PaddingChange(
        rows=len(chosen),
        tokens=tokens,
        padded=change([[row] for row in chosen], tokens),
        batch_rows=min(BATCH_ROWS, len(chosen)),
        batch=None if session.lengths else change(batches, 0),
    )


def padding_note(change: PaddingChange) -> str:
    """A warning where more than `ROUNDING` changes, else nothing."""
    told = []
    if change.padded > ROUNDING:
        told.append(f"padding to {change.tokens} tokens by up to {change.padded:.1g}")
    if change.batch is not None and change.batch > ROUNDING:
        told.append(f"a batch of {change.batch_rows} by up to {change.batch:.1g}: run texts alone")
    return f"a text's probabilities change with {', with '.join(told)}" if told else ""


def _run(session: Session, batch: Sequence[Row], task: Task, padded: int) -> list[NDArray[Any]]:
    """Probabilities of each row of a batch, padded to the longest of them or to `padded`."""
    least = max(padded, *(len(ids) for ids, _ in batch))
    feeds = [session.feed(*row, padded=least) for row in batch]
    together = {name: np.concatenate([feed[name] for feed, _ in feeds]) for name in feeds[0][0]}
    logits = session.run(together)
    if logits.ndim == 2:
        return [_probabilities(task, row) for row in logits]
    return [  # [batch, seq, labels]: of each row its own tokens
        _probabilities(task, row[start : start + len(ids)])
        for row, (_, start), (ids, _) in zip(logits, feeds, batch, strict=True)
    ]


def _probabilities(task: Task, logits: NDArray[np.float32]) -> NDArray[Any]:
    values = logits.astype(np.float64)
    if task == "regression":
        return values
    return np.asarray(expit(values) if task == "multi_label" else softmax(values, axis=-1))
