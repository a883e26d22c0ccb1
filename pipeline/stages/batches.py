"""Rows to padded batches, as a model of any family reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from edgebert.calibration.dataset import Row
from edgebert.calibration.labels import match_labels
from edgebert.pipeline.artifact import Checkpoint, Task
from edgebert.targets.errors import InputError

Batch = dict[str, torch.Tensor]
NO_LABEL = -100  # ignore_index of torch's cross entropy


def target_tensor(rows: Sequence[Row], labels: Sequence[str], task: Task) -> torch.Tensor:
    """What the model should answer; a row without a label is `NO_LABEL`, or NaN where not a class.

    Args:
        rows: the rows.
        labels: label names in id order.
        task: what the head is for.

    Returns:
        single_label: int64 [rows]; multi_label: float32 [rows, labels]; regression: float32 [rows].

    Raises:
        InputError: a label that the model does not know, or token classification.
    """
    if task == "token":
        raise InputError(
            "token classification cannot be trained yet",
            "",
            "give a model and data with one label, several labels or a number a text",
        )
    labeled = [index for index, row in enumerate(rows) if row.label is not None]
    values = match_labels([rows[index] for index in labeled], labels, task).values
    if task == "single_label":
        targets = torch.full((len(rows),), NO_LABEL)
    else:
        width = (len(labels),) if task == "multi_label" else ()
        targets = torch.full((len(rows), *width), torch.nan)
    targets[labeled] = torch.from_numpy(values).to(targets.dtype)
    return targets


class Texts(torch.utils.data.Dataset[dict[str, Any]]):
    """Tokenized rows with their targets; a row without a label is unlabeled text.

    Args:
        rows: the rows.
        labels: label names in id order.
        checkpoint: whose tokenizer reads the texts.
        max_length: longest input in tokens.
        task: what the head is for.

    Raises:
        InputError: as `target_tensor`.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        labels: Sequence[str],
        checkpoint: Checkpoint,
        max_length: int,
        task: Task = "single_label",
    ) -> None:
        self.targets = target_tensor(rows, labels, task)
        tokenizer = checkpoint.tokenizer
        tokenizer.enable_truncation(min(max_length, checkpoint.max_length))
        pairs = [row.text if row.text_pair is None else (row.text, row.text_pair) for row in rows]
        self.encodings = tokenizer.encode_batch(pairs)
        tokenizer.no_truncation()

    def __len__(self) -> int:
        return len(self.encodings)

    def __getitem__(self, index: int) -> dict[str, Any]:
        encoding = self.encodings[index]
        return {
            "input_ids": encoding.ids,
            "token_type_ids": encoding.type_ids,
            "labels": self.targets[index],
        }


@dataclass(frozen=True)
class Collator:
    """Pads rows to the longest of the batch.

    Attributes:
        pad_id: id of the padding token.
        token_types: whether the model takes token types.
        pads_left: whether padding goes before the text.
    """

    pad_id: int
    token_types: bool
    pads_left: bool = False

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> "Collator":
        """The collator that pads for a checkpoint."""
        pad_id = int(checkpoint.config.pad_token_id or 0)
        return cls(pad_id, checkpoint.has_token_type_ids, checkpoint.family.pads_left)

    def __call__(self, rows: list[dict[str, Any]]) -> Batch:
        """Batch of int64: ids, mask and token types [batch, seq], and the targets."""
        side = "left" if self.pads_left else "right"

        def pad(sequences: list[torch.Tensor], value: int) -> torch.Tensor:
            return nn.utils.rnn.pad_sequence(
                sequences, batch_first=True, padding_value=value, padding_side=side
            )

        ids = [torch.tensor(row["input_ids"], dtype=torch.long) for row in rows]
        batch = {
            "input_ids": pad(ids, self.pad_id),
            "attention_mask": pad([torch.ones_like(each) for each in ids], 0),
            "labels": torch.stack([row["labels"] for row in rows]),
        }
        if self.token_types:
            types = [torch.tensor(row["token_type_ids"], dtype=torch.long) for row in rows]
            batch["token_type_ids"] = pad(types, 0)
        return batch
