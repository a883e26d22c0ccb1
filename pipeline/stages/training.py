"""What fine-tuning and distillation share: rows to padded batches, and one seeded run of transformers' Trainer."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as settings
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.targets.errors import InputError, MachineError

Batch = dict[str, torch.Tensor]
NO_LABEL = -100  # ignore_index of torch's cross entropy


@settings(frozen=True, config=ConfigDict(extra="forbid"))
class TrainingSettings:
    """Settings of one training run.

    Attributes:
        epochs: passes over the texts.
        batch_size: rows a step.
        learning_rate: peak of the schedule: linear warm-up, then cosine to zero.
        warmup: share of the steps that warm up.
        weight_decay: of AdamW.
        max_length: longest input in tokens; longer texts are truncated.
        seed: of every random choice.
        bf16: bfloat16 autocast; 4 times the speed on processors with AVX512-BF16 or AMX.
        save_steps: steps between the checkpoints an interrupted run resumes from.
    """

    epochs: float = Field(default=5.0, gt=0)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=3e-4, gt=0)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    max_length: int = Field(default=128, ge=4)
    seed: int = 0
    bf16: bool = False
    save_steps: int = Field(default=1000, ge=1)


class Texts(torch.utils.data.Dataset[dict[str, Any]]):
    """Tokenized rows with their label ids; a row without a label is unlabeled text.

    Args:
        rows: the rows.
        labels: label names in id order.
        checkpoint: whose tokenizer reads the texts.
        max_length: longest input in tokens.
    """

    def __init__(
        self, rows: Sequence[Row], labels: Sequence[str], checkpoint: Checkpoint, max_length: int
    ) -> None:
        ids = {name: index for index, name in enumerate(labels)}
        self.label_ids = [NO_LABEL if row.label is None else ids[str(row.label)] for row in rows]
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
            "labels": self.label_ids[index],
        }


@dataclass(frozen=True)
class Collator:
    """Pads rows to the longest of the batch.

    Attributes:
        pad_id: id of the padding token.
        token_types: whether the model takes token types.
    """

    pad_id: int
    token_types: bool

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> "Collator":
        """The collator that pads for a checkpoint."""
        return cls(int(checkpoint.config.pad_token_id or 0), checkpoint.has_token_type_ids)

    def __call__(self, rows: list[dict[str, Any]]) -> Batch:
        """Batch of int64: ids, mask and token types [batch, seq], labels [batch]."""

        def pad(name: str, value: int) -> torch.Tensor:
            sequences = [torch.tensor(row[name]) for row in rows]
            return nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=value)

        lengths = torch.tensor([len(row["input_ids"]) for row in rows])
        ids = pad("input_ids", self.pad_id)
        batch = {
            "input_ids": ids,
            "attention_mask": (torch.arange(ids.shape[1]) < lengths[:, None]).long(),
            "labels": torch.tensor([row["labels"] for row in rows]),
        }
        if self.token_types:
            batch["token_type_ids"] = pad("token_type_ids", 0)
        return batch


class StopAtNaN(TrainerCallback):
    """Stops at the first loss that is no number; what was saved before stays."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Look at each logged loss."""
        if logs and not math.isfinite(float(logs.get("loss", 0.0))):
            raise InputError(
                f"the loss is {logs['loss']} at step {state.global_step}",
                f"checkpoints up to here are in {args.output_dir}",
                "lower learning_rate, or turn bf16 off",
            )


def run_training(
    module: nn.Module,
    texts: torch.utils.data.Dataset[dict[str, Any]],
    collator: Callable[[list[dict[str, Any]]], Any],
    settings: TrainingSettings,
    work: Path,
    callbacks: Sequence[TrainerCallback] = (),
) -> None:
    """Train `module`, whose forward returns `{"loss": ...}`, in place.

    Args:
        module: the module to train.
        texts: the rows; each has `input_ids`, by whose length they are grouped.
        collator: makes a batch of them.
        settings: of the run.
        work: folder of the checkpoints; a run that was killed resumes from the last of them and ends with the
            same weights as an unbroken run.
        callbacks: called at each step.

    Raises:
        InputError: the loss stopped being a number.
        MachineError: the disk is full.
    """
    logging.getLogger("transformers.trainer").setLevel(logging.WARNING)
    steps = math.ceil(len(texts) / settings.batch_size) * settings.epochs
    arguments = TrainingArguments(
        output_dir=str(work),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=int(settings.warmup * steps),
        weight_decay=settings.weight_decay,
        seed=settings.seed,
        use_cpu=not torch.cuda.is_available(),
        bf16=settings.bf16,
        train_sampling_strategy="group_by_length",
        remove_unused_columns=False,
        logging_steps=50,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=settings.save_steps,
        save_total_limit=2,
        dataloader_pin_memory=False,
        report_to=[],
    )
    trainer = Trainer(
        model=module,
        args=arguments,
        train_dataset=texts,
        data_collator=collator,
        callbacks=[StopAtNaN(), *callbacks],
    )
    try:
        trainer.train(resume_from_checkpoint=get_last_checkpoint(work) if work.is_dir() else None)
    except OSError as error:
        raise MachineError(f"training stopped: {error}", str(work)) from error
