"""Reference: the checkpoint's fp32 logits by PyTorch, which every artifact is compared with."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from edgebert.calibration.dataset import Dataset, Row, Split
from edgebert.calibration.sample import spread
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.comparison import Logits
from edgebert.pipeline.runtimes.run import Encoded, encode
from edgebert.pipeline.stages.workers import core_count, share_out
from edgebert.targets.errors import InputError

BATCH_ROWS = 64


@dataclass(frozen=True)
class ReferenceLogits:
    """A folder with `reference.npz`: the logits and the rows of the split they belong to."""

    path: Path
    split: Split

    @cached_property
    def logits(self) -> Logits:
        """The logits."""
        with np.load(self.path / "reference.npz") as arrays:
            return Logits(arrays["values"], arrays["row"], arrays["word"])

    @property
    def rows(self) -> list[int]:
        """Indices of the rows in their split, ascending."""
        return [int(index) for index in np.unique(self.logits.row)]


@dataclass(frozen=True)
class Reference:
    """Compute the reference logits of a split.

    Attributes:
        split: `dev` to choose by, `test` for the verdict.
        max_rows: largest number of rows, a seeded draw spread over labels and lengths; None: all.
        seed: of the draw.
    """

    split: Split = "test"
    max_rows: int | None = None
    seed: int = 0

    def __call__(self, checkpoint: Checkpoint, data: Dataset, out: Path) -> ReferenceLogits:
        """Leave `reference.npz` in `out`.

        Raises:
            InputError: the split has no rows.
        """
        rows = data.split(self.split)
        if not rows:
            raise InputError(
                f"no {self.split} rows to measure drift on",
                data.name,
                f"add {self.split}.jsonl to it",
            )
        chosen = spread(rows, self.max_rows or len(rows), self.seed)
        encoded = encode_rows(
            checkpoint.tokenizer, [rows[i] for i in chosen], checkpoint.max_length
        )
        logits = pick_logits(
            run_torch(checkpoint, encoded), encoded, chosen, checkpoint.task == "token"
        )
        out.mkdir(parents=True, exist_ok=True)
        partial = out / "reference.npz.partial"
        with partial.open("wb") as stream:
            np.savez(stream, values=logits.values, row=logits.row, word=logits.word)
        partial.replace(out / "reference.npz")
        return ReferenceLogits(out, self.split)


def encode_rows(tokenizer: Any, rows: Sequence[Row], max_length: int) -> list[Encoded]:
    """Token ids of rows exactly as a device makes them; token classification by its words."""
    return [encode(tokenizer, row.tokens or row.text, row.text_pair, max_length) for row in rows]


def pick_logits(
    raw: Sequence[Any], encoded: Sequence[Encoded], rows: Sequence[int], token: bool
) -> Logits:
    """Items of what a model gave per row; a word has the logits of its first token.

    Args:
        raw: float32 [labels] or [seq, labels] of each row.
        encoded: the rows' tokens.
        rows: the rows' indices in their split, ascending.
        token: whether items are words.
    """
    if not token:
        indices = np.array(rows, dtype=np.int64)
        return Logits(np.stack(raw).astype(np.float32), indices, np.zeros_like(indices))
    values, row, word = [], [], []
    for logits, tokens, index in zip(raw, encoded, rows, strict=True):
        first: dict[int, int] = {}  # word -> its first token
        for position, of_word in enumerate(tokens.word_ids):
            if of_word is not None:
                first.setdefault(of_word, position)
        values.append(np.asarray(logits, dtype=np.float32)[list(first.values())])
        row += [index] * len(first)
        word += list(first)
    return Logits(np.concatenate(values), np.array(row, np.int64), np.array(word, np.int64))


def run_torch(checkpoint: Checkpoint, encoded: Sequence[Encoded]) -> list[Any]:
    """Logits of each row, in batches of rows of one length: nothing is padded.

    One torch thread a batch, so that the sums do not depend on the number of cores.
    """
    import torch

    from edgebert.pipeline.stages.load import load_model

    model = load_model(checkpoint)
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for index, tokens in enumerate(encoded):
        by_length[len(tokens.ids)].append(index)
    batches = [
        indices[start : start + BATCH_ROWS]
        for _, indices in sorted(by_length.items(), reverse=True)  # the long ones first
        for start in range(0, len(indices), BATCH_ROWS)
    ]
    results: list[Any] = [None] * len(encoded)

    def run_batch(batch: list[int]) -> None:
        ids = torch.tensor([encoded[i].ids for i in batch])  # [batch, seq]
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if checkpoint.has_token_type_ids:
            inputs["token_type_ids"] = torch.tensor([encoded[i].type_ids for i in batch])
        with torch.inference_mode():
            for index, logits in zip(batch, model(**inputs).logits.numpy(), strict=True):
                results[index] = logits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        share_out(batches, [run_batch] * core_count())
    finally:
        torch.set_num_threads(threads)
    return results
