"""Distill: a student learns a teacher's logits and hidden states, on labeled and on unlabeled text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback, set_seed

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.losses import hidden_state_loss, soft_target_loss
from edgebert.pipeline.stages.training import Batch, Collator, Texts, TrainingSettings, run_training
from edgebert.targets.errors import InputError


class _PairedTexts(torch.utils.data.Dataset[dict[str, Any]]):
    """The same rows as student and teacher read them, each with its own tokenizer."""

    def __init__(self, student: Texts, teacher: Texts) -> None:
        self.student, self.teacher = student, teacher
        pairs = zip(student.encodings, teacher.encodings, strict=True)
        self.aligned = [ours.tokens == theirs.tokens for ours, theirs in pairs]

    def __len__(self) -> int:
        return len(self.student)

    def __getitem__(self, index: int) -> dict[str, Any]:
        aligned = self.aligned[index]
        return {**self.student[index], "teacher": self.teacher[index], "aligned": aligned}


@dataclass(frozen=True)
class _PairedCollator:
    """Pads for the student and for the teacher."""

    student: Collator
    teacher: Collator

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        batch, teacher = self.student(rows), self.teacher([row["teacher"] for row in rows])
        labels = batch.pop("labels")
        del teacher["labels"]
        aligned = torch.tensor([row["aligned"] for row in rows])
        return {"student": batch, "teacher": teacher, "labels": labels, "aligned": aligned}


class _Distillation(nn.Module):
    """Student and loss in the form that `run_training` takes; only the student and its projection are saved."""

    def __init__(self, student: nn.Module, teacher: nn.Module, stage: "Distill") -> None:
        super().__init__()
        self.student = student
        self.stage = stage
        self.layer_map = uniform_layer_map(
            int(student.config.num_hidden_layers), int(teacher.config.num_hidden_layers)
        )
        width, teacher_width = int(student.config.hidden_size), int(teacher.config.hidden_size)
        self.projection: nn.Module = (
            nn.Identity() if width == teacher_width else nn.Linear(width, teacher_width)
        )
        # A list hides the teacher from parameters() and state_dict(): it is neither trained nor saved.
        precision = torch.bfloat16 if stage.training.bf16 else torch.float32
        self._teacher = [teacher.eval().requires_grad_(False).to(precision)]

    def forward(
        self, student: Batch, teacher: Batch, labels: torch.Tensor, aligned: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Loss of one batch.

        Args:
            student, teacher: ids, mask and types of the texts as each reads them.
            labels: label ids [batch].
            aligned: whether both cut the text into the same tokens [batch]; hidden states are compared there only.
        """
        stage = self.stage
        with torch.no_grad():
            target = self._teacher[0].to(labels.device)(**teacher, output_hidden_states=True)
        output = self.student(**student, output_hidden_states=True)
        loss = soft_target_loss(
            output.logits.float(), target.logits.float(), labels, stage.alpha, stage.temperature
        )
        if stage.hidden_weight and bool(aligned.any()):
            mask = student["attention_mask"] * aligned[:, None]
            seq = min(mask.shape[1], teacher["attention_mask"].shape[1])
            hidden = [
                hidden_state_loss(
                    self.projection(output.hidden_states[depth][:, :seq]).float(),
                    target.hidden_states[teacher_depth][:, :seq].float(),
                    mask[:, :seq],
                )
                for depth, teacher_depth in [(0, 0), *self.layer_map]
            ]
            loss = loss + stage.hidden_weight * torch.stack(hidden).mean()
        return {"loss": loss}


def uniform_layer_map(student_layers: int, teacher_layers: int) -> list[tuple[int, int]]:
    """Which teacher layer each student layer learns from: m -> m * N / M (TinyBERT, section 3.1).

    Layers count from 1; 0 is the embedding output.
    """
    return [
        (depth, round(depth * teacher_layers / student_layers))
        for depth in range(1, student_layers + 1)
    ]


class ShareLayers(TrainerCallback):
    """Pulls the layer groups of an ALBERT together until they are one.

    After each optimizer step every group moves towards the mean of all, so far that the distances shrink linearly to
    zero over the first `share` of the steps; from then on the groups are equal and stay so. Starting from the
    teacher's own layers this keeps what they know, which a copy of one layer does not.
    """

    def __init__(self, groups: Sequence[nn.Module], share: float) -> None:
        self.share = share
        self.tensors = list(zip(*(group.parameters() for group in groups), strict=True))

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Pull once."""
        remaining = self.share * state.max_steps - state.global_step
        pull_together(self.tensors, strength=1 / max(1.0, remaining))


@torch.no_grad()
def pull_together(tensors: Sequence[tuple[torch.Tensor, ...]], strength: float) -> None:
    """Move the tensors of each tuple by `strength` (0..1) towards their mean, in place."""
    for copies in tensors:
        mean = torch.stack(copies).mean(dim=0)
        for copy in copies:
            copy.lerp_(mean, strength)


@dataclass(frozen=True)
class Distill:
    """Train a student.

    Attributes:
        training: settings of the run.
        alpha: weight of the labels; 1 - alpha is the teacher's.
        temperature: T of the soft targets.
        hidden_weight: weight of the hidden-state loss; 0 leaves it out. It needs the same tokenization.
        share_after: share of the steps after which the layer groups of an ALBERT student are one.
    """

    training: TrainingSettings = field(default_factory=TrainingSettings)
    alpha: float = 0.5
    temperature: float = 2.0
    hidden_weight: float = 1.0
    share_after: float = 0.3

    def __call__(
        self,
        teacher: Checkpoint,
        student: Checkpoint,
        data: Dataset,
        out: Path,
        work: Path,
        unlabeled: Sequence[Row] = (),
    ) -> Checkpoint:
        """Leave the trained student in `out`.

        Args:
            teacher: a classifier of the data's labels.
            student: the untrained or half-trained student, with the teacher's labels.
            data: its train split is learned from.
            out: folder of the result.
            work: folder of the checkpoints that an interrupted run resumes from.
            unlabeled: more texts, which the teacher labels.

        Raises:
            InputError: the labels differ, or the tokenizations do where hidden states are compared.
        """
        if teacher.labels != student.labels:
            different = sorted(set(teacher.labels) ^ set(student.labels))
            raise InputError(
                "teacher and student have different labels", f"first differences: {different[:5]}"
            )
        set_seed(self.training.seed)
        rows = [*data.train, *(replace(row, label=None) for row in unlabeled)]
        texts, teacher_texts = (
            Texts(rows, teacher.labels, checkpoint, self.training.max_length)
            for checkpoint in (student, teacher)
        )
        paired = _PairedTexts(texts, teacher_texts)
        if self.hidden_weight and 2 * sum(paired.aligned) < len(paired):
            raise InputError(
                f"student and teacher cut only {sum(paired.aligned)} of {len(paired)} texts into the same tokens",
                "hidden states cannot be compared",
                "set hidden_weight = 0, or give both the same tokenizer",
            )
        model = load_model(student)
        module = _Distillation(model, load_model(teacher), self)
        callbacks = []
        groups = int(getattr(model.config, "num_hidden_groups", 1))
        layers = dotted(model, student.family.layer_path)
        if groups > 1:
            callbacks.append(ShareLayers(list(layers), self.share_after))
        collator = _PairedCollator(Collator.of(student), Collator.of(teacher))
        run_training(module, paired, collator, self.training, work, callbacks)
        if groups > 1:
            del layers[1:]
            model.config.num_hidden_groups = 1
        return save_checkpoint(model, student.tokenizer, out, student.name)
