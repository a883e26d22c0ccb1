"""Fine-tune: a pretrained encoder becomes a classifier of the data's labels."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoModelForSequenceClassification, set_seed

from edgebert.calibration.dataset import Dataset
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.training import Collator, Texts, TrainingSettings, run_training


class _Classifier(nn.Module):
    """Cross entropy of a transformers classifier, in the form that `run_training` takes."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **batch: Any) -> dict[str, Any]:
        labels = batch.pop("labels")
        logits = self.model(**batch).logits  # [batch, labels]
        return {"loss": nn.functional.cross_entropy(logits.float(), labels)}


@dataclass(frozen=True)
class Finetune:
    """Train a classifier on the train split.

    Attributes:
        training: settings of the run.
    """

    training: TrainingSettings = field(default_factory=TrainingSettings)

    def __call__(self, checkpoint: Checkpoint, data: Dataset, out: Path, work: Path) -> Checkpoint:
        """Leave the fine-tuned checkpoint in `out`; its labels are those of the data, in alphabetical order."""
        labels = sorted({str(row.label) for row in data.train})
        set_seed(self.training.seed)  # the head is drawn here
        model = AutoModelForSequenceClassification.from_pretrained(
            checkpoint.path,
            local_files_only=True,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={name: index for index, name in enumerate(labels)},
            ignore_mismatched_sizes=True,
        )
        texts = Texts(data.train, labels, checkpoint, self.training.max_length)
        run_training(_Classifier(model), texts, Collator.of(checkpoint), self.training, work)
        return save_checkpoint(model, checkpoint.tokenizer, out, checkpoint.name)
