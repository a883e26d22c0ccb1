"""Fine-tune: a pretrained encoder becomes a classifier of the data's labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoModelForSequenceClassification, set_seed

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, Task
from edgebert.pipeline.progress import Report
from edgebert.pipeline.stages.batches import Collator, Texts
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.losses import label_loss
from edgebert.pipeline.stages.training import is_main_process, run_training
from edgebert.pipeline.training_settings import TrainingSettings
from edgebert.targets.errors import InputError

PROBLEM_TYPES = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


class _Classifier(nn.Module):
    """The label loss of a transformers classifier, in the form that `run_training` takes."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, **batch: Any) -> dict[str, Any]:
        labels = batch.pop("labels")
        logits = self.model(**batch).logits  # [batch, labels]
        return {"loss": label_loss(logits.float(), labels, self.task)}


@dataclass(frozen=True)
class Finetune:
    """Train a classifier on the train split.

    `accelerate launch` runs it on many GPUs; then only the process of rank 0 writes `out`.

    Attributes:
        training: settings of the run.
    """

    training: TrainingSettings = field(default_factory=TrainingSettings)

    def __call__(
        self,
        checkpoint: Checkpoint,
        data: Dataset,
        out: Path,
        work: Path,
        report: Report | None = None,
    ) -> Checkpoint:
        """Leave the fine-tuned checkpoint in `out`; its task and its labels are those of the data.

        Args:
            checkpoint: an encoder, with or without a head.
            data: its train split is learned from.
            out: folder of the result.
            work: folder of the checkpoints that an interrupted run resumes from.
            report: called after each step.

        Raises:
            InputError: no train rows, token classification, or the loss stopped being a number.
            MachineError: the disk is full.
        """
        task, labels = read_labels(data.train, data.name)
        set_seed(self.training.seed)  # the head is drawn here
        model = AutoModelForSequenceClassification.from_pretrained(
            checkpoint.path,
            local_files_only=True,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={name: index for index, name in enumerate(labels)},
            problem_type=PROBLEM_TYPES[task],
            ignore_mismatched_sizes=True,
        )
        texts = Texts(data.train, labels, checkpoint, self.training.max_length, task)
        module = _Classifier(model, task)
        run_training(module, texts, Collator.of(checkpoint), self.training, work, report=report)
        if not is_main_process():
            return Checkpoint(out, checkpoint.name)
        return save_checkpoint(model, checkpoint.tokenizer, out, checkpoint.name)


def read_labels(rows: Sequence[Row], where: str) -> tuple[Task, list[str]]:
    """The task of labeled rows, and their label names in order (numbers by value).

    Raises:
        InputError: no row, or token classification.
    """
    if not rows:
        raise InputError("no train rows to learn from", where, "add train.jsonl to it")
    if any(row.tokens for row in rows):
        raise InputError("token classification cannot be trained yet", where)
    if isinstance(rows[0].label, float):
        return "regression", ["score"]
    names = {
        str(name)
        for row in rows
        for name in (row.label if isinstance(row.label, tuple) else (row.label,))
    }
    ordered = sorted(names, key=lambda name: (int(name) if name.isdecimal() else 0, name))
    return "multi_label" if isinstance(rows[0].label, tuple) else "single_label", ordered
