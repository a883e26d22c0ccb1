"""Quantization-aware training: the weights learn to be int8, and the quantizers their ranges."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import set_seed

from edgebert.calibration.dataset import Dataset
from edgebert.pipeline.artifact import Checkpoint, Task
from edgebert.pipeline.progress import Report
from edgebert.pipeline.recipe import CalibrationSettings
from edgebert.pipeline.stages.batches import Collator, Texts
from edgebert.pipeline.stages.calibrate import calibration_rows
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.fake_quantizers import (
    Batch,
    insert_quantizers,
    learned_ranges,
    save_ranges,
    snap,
)
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.losses import soft_target_loss
from edgebert.pipeline.stages.training import is_main_process, run_training
from edgebert.pipeline.training_settings import QuantizeAwareSettings
from edgebert.targets.errors import InputError


class _SelfDistillation(nn.Module):
    """The quantized model learns from what it was in fp32, and from the labels."""

    # The Trainer asks for it where a saved module lacks names: quantizers that are shared have two.
    _keys_to_ignore_on_save = None

    def __init__(
        self, model: nn.Module, teacher: nn.Module, settings: QuantizeAwareSettings, task: Task
    ) -> None:
        super().__init__()
        self.model, self.settings, self.task = model, settings, task
        self._teacher = [teacher.requires_grad_(False)]  # a list hides it from parameters()

    def train(self, mode: bool = True) -> "_SelfDistillation":
        # Dropout would be noise on top of the rounding: the answers to match are known.
        super().train(False)
        return self

    def forward(self, **batch: Any) -> dict[str, Any]:
        labels = batch.pop("labels")
        with torch.no_grad():
            theirs = self._teacher[0].to(labels.device)(**batch).logits
        ours = self.model(**batch).logits  # [batch, labels]
        settings = self.settings
        loss = soft_target_loss(
            ours, theirs, labels, settings.alpha, settings.temperature, self.task
        )
        return {"loss": loss}


@dataclass(frozen=True)
class QuantizeAware:
    """Train with fake quantizers (Jacob et al. 2017, arXiv:1712.05877; NNCF's, whose ranges learn).

    The result is an fp32 checkpoint whose linear weights lie on 8-bit steps, with the ranges of the
    quantizers beside it. A `_trained` scheme of ONNX computes with exactly these. Other
    schemes, those of TFLite among them, take the checkpoint as any other: with ranges of their own,
    for weights that have learned to bear rounding.

    Attributes:
        settings: of the training and its loss.
        calibration: rows of the train split that the ranges start from.
        reduce_range: weights in 7 bits, for x86 without VNNI.
    """

    settings: QuantizeAwareSettings
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    reduce_range: bool = False

    def __call__(
        self,
        checkpoint: Checkpoint,
        data: Dataset,
        out: Path,
        work: Path,
        report: Report | None = None,
    ) -> Checkpoint:
        """Leave the trained checkpoint in `out`.

        Args:
            checkpoint: the fp32 model, which is the teacher as well.
            data: its train split is learned from; rows need no label.
            out: folder of the result.
            work: folder of the checkpoints that an interrupted run resumes from.
            report: called after each step.

        Raises:
            InputError: no train rows, no linear layer that NNCF can quantize, token classification,
                or the loss stopped being a number.
            MachineError: the disk is full, or NNCF's extension could not be built.
        """
        if not data.train:
            raise InputError("no train rows to learn from", data.name, "add train.jsonl to it")
        settings = self.settings
        texts = Texts(
            data.train, checkpoint.labels, checkpoint, settings.max_length, checkpoint.task
        )
        set_seed(settings.seed)
        rows = _calibration_batches(checkpoint, data, self.calibration, settings.max_length)
        quantized = insert_quantizers(load_model(checkpoint), rows, self.reduce_range)
        if not learned_ranges(quantized, rows[0]):
            raise InputError(
                f"{checkpoint.family.model_type} has no linear layer that NNCF can quantize",
                str(checkpoint.path),
                "leave out [quantize_aware]",
            )
        module = _SelfDistillation(quantized, load_model(checkpoint), settings, checkpoint.task)
        collator = Collator.of(checkpoint)
        run_training(module, texts, collator, settings.training, work, report=report)
        if not is_main_process():
            return Checkpoint(out, checkpoint.name)
        ranges = learned_ranges(quantized.cpu(), rows[0])
        model = load_model(checkpoint)
        trained = quantized.state_dict()
        model.load_state_dict({name: trained[name] for name in model.state_dict()})
        with torch.no_grad():
            for layer, one in ranges.items():
                weight = model.get_submodule(layer).weight
                weight.copy_(snap(weight, one))
        saved = save_checkpoint(model, checkpoint.tokenizer, out, checkpoint.name)
        save_ranges(ranges, out)
        return saved


def _calibration_batches(
    checkpoint: Checkpoint, data: Dataset, settings: CalibrationSettings, max_length: int
) -> Sequence[Batch]:
    """Train texts as inputs of batch 1."""
    batches = []
    for row in calibration_rows(checkpoint, data, settings, max_length):
        ids = torch.tensor([row.ids])
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if checkpoint.has_token_type_ids:
            batch["token_type_ids"] = torch.tensor([row.type_ids])
        batches.append(batch)
    return batches
