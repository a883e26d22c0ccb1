"""Distill: a student learns a teacher's logits and inner states, on labeled and unlabeled text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from transformers import set_seed

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.pipeline.progress import Report
from edgebert.pipeline.stages.batches import Collator, Texts
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.distillation_loss import Distillation, match_columns
from edgebert.pipeline.stages.layer_sharing import ShareLayers, final_parameters, keep_one_group
from edgebert.pipeline.stages.training import is_main_process, run_training
from edgebert.pipeline.training_settings import DistillSettings
from edgebert.targets.errors import InputError


class _PairedTexts(torch.utils.data.Dataset[dict[str, Any]]):
    """The same rows as student and teacher read them, each with its own tokenizer."""

    def __init__(self, student: Texts, teacher: Texts, same_side: bool) -> None:
        self.student, self.teacher = student, teacher
        pairs = zip(student.encodings, teacher.encodings, strict=True)
        self.aligned = [same_side and ours.tokens == theirs.tokens for ours, theirs in pairs]

    def __len__(self) -> int:
        return len(self.student)

    def __getitem__(self, index: int) -> dict[str, Any]:
        aligned = self.aligned[index]
        return {**self.student[index], "teacher": self.teacher[index], "aligned": aligned}


class _PairedCollator:
    """Pads for the student and for the teacher."""

    def __init__(self, student: Checkpoint, teacher: Checkpoint) -> None:
        self.student, self.teacher = Collator.of(student), Collator.of(teacher)

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        batch, teacher = self.student(rows), self.teacher([row["teacher"] for row in rows])
        labels = batch.pop("labels")
        del teacher["labels"]
        aligned = torch.tensor([row["aligned"] for row in rows])
        return {"student": batch, "teacher": teacher, "labels": labels, "aligned": aligned}


@dataclass(frozen=True)
class Distill:
    """Train a student.

    `accelerate launch` runs it on many GPUs; then only the process of rank 0 writes `out`.

    Attributes:
        settings: of the losses and of the run.
    """

    settings: DistillSettings = field(default_factory=DistillSettings)

    def __call__(
        self,
        teacher: Checkpoint,
        student: Checkpoint,
        data: Dataset,
        out: Path,
        work: Path,
        unlabeled: Sequence[Row] = (),
        report: Report | None = None,
    ) -> Checkpoint:
        """Leave the trained student in `out`.

        Args:
            teacher: a classifier of the data's labels.
            student: the untrained or half-trained student, with the teacher's labels.
            data: its train split is learned from.
            out: folder of the result.
            work: folder of the checkpoints that an interrupted run resumes from.
            unlabeled: more texts, which the teacher labels.
            report: called after each step.

        Raises:
            InputError: the labels differ, the tokenizations do where tokens are compared, the
                student is larger than its teacher, or the loss stopped being a number.
            MachineError: the disk is full.
        """
        check_pair(teacher, student)
        rows = [*data.train, *(replace(row, label=None) for row in unlabeled)]
        if not rows:
            raise InputError("no train rows to learn from", data.name, "add train.jsonl to it")
        texts, teacher_texts = (
            Texts(rows, student.labels, checkpoint, self.settings.max_length, student.task)
            for checkpoint in (student, teacher)
        )
        same_side = student.family.pads_left == teacher.family.pads_left
        paired = _PairedTexts(texts, teacher_texts, same_side)
        if self.settings.compares_tokens and 2 * sum(paired.aligned) < len(paired):
            raise InputError(
                f"student and teacher cut only {sum(paired.aligned)} of {len(paired)} texts into "
                "the same tokens: their insides cannot be compared",
                "",
                "set hidden_weight=0 and embedding_weight=0 (and what else is set), or give both "
                "the same tokenizer",
            )
        set_seed(self.settings.seed)  # dropout, and the projections
        module = Distillation(student, teacher, self.settings, half=self.settings.bf16)
        model = module.student
        layers: Any = dotted(model, student.family.layer_path)
        grouped = int(getattr(model.config, "num_hidden_groups", 1)) > 1
        callbacks = (ShareLayers(list(layers), self.settings.share_after),) if grouped else ()
        collator = _PairedCollator(student, teacher)
        run_training(module, paired, collator, self.settings, work, callbacks, report)
        if grouped:
            keep_one_group(model, layers)
        if not is_main_process():
            return Checkpoint(out, student.name)
        return save_checkpoint(model, student.tokenizer, out, student.name)


def check_pair(teacher: Checkpoint, student: Checkpoint) -> None:
    """Refuse a pair that makes no sense, before anything is trained.

    Raises:
        InputError: tasks or labels differ, or the student is larger than its teacher.
    """
    if teacher.task != student.task:
        raise InputError(f"the teacher's task is {teacher.task}, the student's {student.task}")
    match_columns(student.labels, teacher.labels)
    sizes = [final_parameters(checkpoint) for checkpoint in (student, teacher)]
    if sizes[0] > sizes[1]:
        raise InputError(
            f"the student is larger than its teacher: {sizes[0] / 1e6:.2f} M parameters, "
            f"{sizes[1] / 1e6:.2f} M",
            "",
            "give a smaller student or a larger teacher",
        )
