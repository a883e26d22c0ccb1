"""Distillation: what is learned, what is refused, and that no interruption changes the result."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.families import all_families
from edgebert.pipeline.stages.batches import Collator, Texts
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.distill import Distill
from edgebert.pipeline.stages.distillation_loss import Distillation
from edgebert.pipeline.stages.layer_sharing import keep_one_group
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.random_weights import make_tokenizer
from edgebert.pipeline.stages.students import albert_like, distilbert_like
from edgebert.pipeline.stages.training import run_training
from edgebert.pipeline.training_settings import DistillSettings
from edgebert.targets.errors import InputError

TinyCheckpoint = Callable[..., Checkpoint]
LABELS = ("bad", "so so", "good")
WORDS = (
    "the",
    "film",
    "was",
    "long",
    "book",
    "music",
    "and",
    "weather",
    "in",
    "play",
    "not",
    "new",
)
ALL_LOSSES: dict[str, Any] = {
    "hidden_weight": 1.0,
    "embedding_weight": 1.0,
    "attention_weight": 1.0,
    "relation_weight": 1.0,
}
LOGITS_ONLY: dict[str, Any] = {"hidden_weight": 0.0, "embedding_weight": 0.0}


def make_rows(count: int, seed: int = 0) -> tuple[Row, ...]:
    """Texts whose label is decided by one word."""
    draw = random.Random(seed)
    rows = []
    for index in range(count):
        label = LABELS[index % 3]
        words = draw.choices(WORDS, k=draw.randint(2, 9))
        words.insert(draw.randrange(len(words)), {"so so": "card"}.get(label, label))
        rows.append(Row(" ".join(words), label))
    return tuple(rows)


def make_data(train: tuple[Row, ...]) -> Dataset:
    return Dataset("toy", train, make_rows(30, 1), make_rows(60, 2), sha256="")


def settings(**fields: Any) -> DistillSettings:
    return DistillSettings(**({"epochs": 1, "batch_size": 16, "learning_rate": 1e-3} | fields))


def logits_of(checkpoint: Checkpoint, texts: tuple[str, ...] = ("the film was good",)) -> Any:
    model = load_model(checkpoint)
    with torch.no_grad():
        return torch.cat(
            [
                model(input_ids=torch.tensor([checkpoint.tokenizer.encode(text).ids])).logits
                for text in texts
            ]
        )


def loss_of(
    stage: Distill, teacher: Checkpoint, student: Checkpoint, rows: tuple[Row, ...]
) -> float:
    """The loss on rows, without dropout."""
    module = Distillation(student, teacher, stage.settings, half=False).eval()
    batches = []
    for checkpoint in (student, teacher):
        texts = Texts(rows, student.labels, checkpoint, 64, student.task)
        batches.append(Collator.of(checkpoint)([texts[index] for index in range(len(rows))]))
    labels, _ = (batch.pop("labels") for batch in batches)
    with torch.no_grad():
        return float(module(*batches, labels, torch.ones(len(rows)).bool())["loss"])


@pytest.fixture
def teacher(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> Checkpoint:
    return tiny_checkpoint("bert", tmp_path / "teacher", LABELS, num_hidden_layers=4)


@pytest.mark.parametrize("model_type", list(all_families()))
def test_every_family_learns_from_its_own(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    teacher = tiny_checkpoint(model_type, tmp_path / "teacher", LABELS)
    student = distilbert_like(teacher, tmp_path / "student")
    fields = dict(ALL_LOSSES)
    if model_type in ("deberta", "modernbert", "xlnet"):  # one matrix for all three, or none
        with pytest.raises(InputError, match="no separate query, key and value"):
            Distillation(student, teacher, DistillSettings(**fields), half=False)
        del fields["relation_weight"]
    stage = Distill(settings(epochs=10, warmup=0, **fields))
    data = make_data(make_rows(32))
    made = stage(teacher, student, data, tmp_path / "out", tmp_path / "work")
    before, after = (loss_of(stage, teacher, x, data.train) for x in (student, made))
    assert after < 0.9 * before


def test_a_narrower_student_learns_all_insides(
    tiny_checkpoint: TinyCheckpoint, teacher: Checkpoint, tmp_path: Path
) -> None:
    student = tiny_checkpoint(
        "bert", tmp_path / "s", LABELS, hidden_size=24, num_attention_heads=4, intermediate_size=48
    )
    module = Distillation(
        student, teacher, DistillSettings(**ALL_LOSSES, relation_heads=8), half=False
    )
    texts = [Texts(make_rows(4), LABELS, checkpoint, 64) for checkpoint in (student, teacher)]
    batches = [Collator.of(teacher)([each[i] for i in range(4)]) for each in texts]
    labels = batches[0].pop("labels")
    del batches[1]["labels"]
    loss = module(*batches, labels, torch.ones(4).bool())["loss"]
    loss.backward()
    for part in (module.projection, module.embedding_projection, module.head_projection):
        assert all(float(p.grad.abs().sum()) > 0 for p in part.parameters())
    assert not any(parameter.requires_grad for parameter in module._teacher[0].parameters())
    with pytest.raises(InputError, match="7 relation heads do not divide the 24"):
        Distillation(student, teacher, DistillSettings(**ALL_LOSSES, relation_heads=7), half=False)


# Tasks, labels, tokenizers


@pytest.mark.parametrize("task", ["multi_label", "regression"])
def test_other_tasks_learn(tiny_checkpoint: TinyCheckpoint, tmp_path: Path, task: str) -> None:
    regression = task == "regression"
    names = ["score"] if regression else LABELS
    fields = {} if regression else {"problem_type": "multi_label_classification"}
    teacher = tiny_checkpoint("bert", tmp_path / "t", names, num_hidden_layers=4, **fields)
    assert teacher.task == task
    student = distilbert_like(teacher, tmp_path / "s")
    assert student.task == task
    texts = tuple(row.text for row in make_rows(48))
    wanted = logits_of(teacher, texts)
    labels: list[Any] = [float(row[0]) for row in wanted]
    if not regression:
        labels = [tuple(LABELS[i] for i in range(3) if float(row[i]) > 0) for row in wanted]
    rows = tuple(Row(text, label) for text, label in zip(texts, labels, strict=True))
    stage = Distill(settings(epochs=15, warmup=0, **LOGITS_ONLY))
    made = stage(teacher, student, make_data(rows[:24]), tmp_path / "o", tmp_path / "w", rows[24:])
    before, after = (loss_of(stage, teacher, x, rows[:24]) for x in (student, made))
    assert after < 0.8 * before


def test_labels_are_matched_by_name(
    tiny_checkpoint: TinyCheckpoint, teacher: Checkpoint, tmp_path: Path
) -> None:
    order = [2, 0, 1]
    model = load_model(teacher)
    model.classifier.weight.data = model.classifier.weight.data[order]
    model.classifier.bias.data = model.classifier.bias.data[order]
    names = [LABELS[index].upper() for index in order]
    model.config.id2label = dict(enumerate(names))
    model.config.label2id = {name: index for index, name in enumerate(names)}
    student = save_checkpoint(model, teacher.tokenizer, tmp_path / "s", "permuted")
    module = Distillation(student, teacher, DistillSettings(alpha=0.0), half=False).eval()
    batch = Collator.of(teacher)([Texts(make_rows(1), LABELS, teacher, 64)[0]])
    labels = batch.pop("labels")
    loss = module(batch, batch, labels, torch.ones(1).bool())["loss"]
    assert float(loss) == pytest.approx(0, abs=1e-6)


def other_tokenizer(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    tokenizer = make_tokenizer(112, 0, cls_last=False)  # no room for whole words
    return save_checkpoint(load_model(checkpoint), tokenizer, folder, "other")


def test_different_tokenizers_share_logits_only(teacher: Checkpoint, tmp_path: Path) -> None:
    student = other_tokenizer(distilbert_like(teacher, tmp_path / "s"), tmp_path / "s2")
    data = make_data(make_rows(64))
    with pytest.raises(InputError, match="0 of 64 texts into the same tokens"):
        Distill()(teacher, student, data, tmp_path / "o", tmp_path / "w")
    stage = Distill(settings(epochs=5, alpha=0.0, **LOGITS_ONLY))
    made = stage(teacher, student, data, tmp_path / "o", tmp_path / "w")
    before, after = (loss_of(stage, teacher, x, data.train) for x in (student, made))
    assert after < 0.5 * before


# Shared layers


@pytest.mark.parametrize("share_after", [0.0, 0.5, 1.0])
def test_layer_groups_become_one(
    teacher: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share_after: float
) -> None:
    seen: list[bool] = []

    def spy(model: Any, layers: Any) -> None:
        groups = [list(group.parameters()) for group in layers]
        first, *others = groups
        seen.append(all(all(map(torch.equal, first, other)) for other in others))
        keep_one_group(model, layers)

    monkeypatch.setattr("edgebert.pipeline.stages.distill.keep_one_group", spy)
    student = albert_like(teacher, make_rows(60), tmp_path / "s", embedding_size=16)
    assert student.config.num_hidden_groups == 4
    stage = Distill(settings(share_after=share_after, **LOGITS_ONLY))
    made = stage(teacher, student, make_data(make_rows(60)), tmp_path / "o", tmp_path / "w")
    assert seen == [True]
    assert made.config.num_hidden_groups == 1
    names = load_file(made.path / "model.safetensors").keys()
    assert {name.split("albert_layer_groups.")[1][0] for name in names if "groups." in name} == {
        "0"
    }
    assert logits_of(made).isfinite().all()


def test_a_layer_used_at_two_depths_survives_training_and_saving(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    model = load_model(teacher)
    model.bert.encoder.layer[2] = model.bert.encoder.layer[0]
    texts = Texts(make_rows(32), LABELS, teacher, 64)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, labels: torch.Tensor, **batch: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": torch.nn.functional.cross_entropy(self.model(**batch).logits, labels)}

    run_training(Module(), texts, Collator.of(teacher), settings(save_steps=1), tmp_path / "w")
    saved = save_checkpoint(model.eval(), teacher.tokenizer, tmp_path / "s", "shared")
    ids = saved.tokenizer.encode("the film was good").ids
    with torch.no_grad():
        before = model(input_ids=torch.tensor([ids])).logits
    script = (
        "import torch, transformers, sys\n"
        "model = transformers.AutoModelForSequenceClassification.from_pretrained("
        "sys.argv[1], attn_implementation='eager')\n"
        f"torch.save(model.eval()(input_ids=torch.tensor([{ids}])).logits, sys.argv[2])"
    )
    after = tmp_path / "logits.pt"
    subprocess.run([sys.executable, "-c", script, str(saved.path), str(after)], check=True)
    assert torch.equal(torch.load(after), before)


# Refusals


def test_what_makes_no_pair_is_refused(
    tiny_checkpoint: TinyCheckpoint, teacher: Checkpoint, tmp_path: Path
) -> None:
    data = make_data(make_rows(20))

    def refuse(student: Checkpoint, match: str, data: Dataset = data) -> None:
        with pytest.raises(InputError, match=match):
            Distill()(teacher, student, data, tmp_path / "o", tmp_path / "w")
        assert not (tmp_path / "o").exists()

    refuse(tiny_checkpoint("bert", tmp_path / "a", ["bad", "good"]), "the student has 2 labels")
    large = tiny_checkpoint("bert", tmp_path / "b", LABELS, num_hidden_layers=5)
    refuse(large, "larger than its teacher")
    small = distilbert_like(teacher, tmp_path / "c")
    refuse(small, "no train rows", make_data(()))
    foreign = make_data((*data.train, Row("what", "excellent", where="train.jsonl, line 21")))
    refuse(small, "unknown label 'excellent'\ntrain.jsonl, line 21", foreign)


def test_a_loss_that_is_no_number_stops_and_loses_nothing(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    student = distilbert_like(teacher, tmp_path / "s")
    stage = Distill(settings(learning_rate=1e30, warmup=0.3, save_steps=1))
    with pytest.raises(InputError, match=r"not finite|loss is (nan|inf)") as caught:
        stage(teacher, student, make_data(make_rows(160)), tmp_path / "o", tmp_path / "w")
    assert "at step" in caught.value.what
    kept = Path(caught.value.where.removeprefix("the last good checkpoint is "))
    tensors = load_file(kept / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    assert not (tmp_path / "o").exists()
