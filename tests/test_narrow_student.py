"""Students that are cut out of their teacher: what must stay, and what beats random weights."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.narrow_student import can_narrow
from edgebert.pipeline.stages.students import make_student

TinyCheckpoint = Callable[..., Checkpoint]
LABELS = ("bad", "so so", "good")
WORDS = [
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
    "good",
    "bad",
]


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, 9))) for _ in range(count)]


SAMPLE = [Row(text, "good") for text in texts(400, 0)]
UNSEEN = texts(60, 1)


def logits(checkpoint: Checkpoint) -> torch.Tensor:
    model = load_model(checkpoint)
    with torch.no_grad():
        ids = [checkpoint.tokenizer.encode(text).ids for text in UNSEEN]
        return torch.cat([model(input_ids=torch.tensor([row])).logits for row in ids])


@pytest.fixture
def teacher(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> Checkpoint:
    return tiny_checkpoint("bert", tmp_path / "teacher", LABELS, num_hidden_layers=4)


def student(teacher: Checkpoint, folder: Path, **sizes: int) -> Checkpoint:
    config = json.loads((teacher.path / "config.json").read_text(encoding="utf-8"))
    file = folder / "student.json"
    file.write_text(json.dumps(config | sizes), encoding="utf-8")
    return make_student(str(file), teacher, SAMPLE, folder / "student")


def error(teacher: Checkpoint, found: Checkpoint) -> float:
    """Share of the logits' variance that the student does not explain."""
    wanted = logits(teacher)
    spread = (wanted - wanted.mean(0)).square().sum()
    return float((logits(found) - wanted).square().sum() / spread)


def test_a_student_of_the_teachers_sizes_is_the_teacher(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    assert error(teacher, student(teacher, tmp_path)) < 1e-3


def test_it_bridges_the_layers_that_it_leaves_out(teacher: Checkpoint, tmp_path: Path) -> None:
    bridged = make_student("distilbert-like", teacher, SAMPLE, tmp_path / "a")
    copied = make_student("distilbert-like", teacher, [], tmp_path / "b")
    assert bridged.config.num_hidden_layers == copied.config.num_hidden_layers == 2
    assert error(teacher, bridged) < 0.8 * error(teacher, copied)


@pytest.mark.parametrize(
    "sizes", [{"intermediate_size": 24}, {"hidden_size": 24}, {"hidden_size": 16}]
)
def test_a_narrower_one_is_closer_than_the_mean_answer(
    teacher: Checkpoint, tmp_path: Path, sizes: dict[str, int]
) -> None:
    assert error(teacher, student(teacher, tmp_path, **sizes)) < 0.9


def test_only_a_bert_that_is_wide_enough_is_cut(
    tiny_checkpoint: TinyCheckpoint, teacher: Checkpoint, tmp_path: Path
) -> None:
    model = load_model(teacher)
    wide = load_model(tiny_checkpoint("bert", tmp_path / "w", LABELS, hidden_size=64))
    assert can_narrow(teacher, model, model, UNSEEN * 2)
    assert not can_narrow(teacher, model, model, UNSEEN[:60])
    assert not can_narrow(teacher, model, wide, UNSEEN * 9)
    for other in ("roberta", "albert", "modernbert", "xlnet", "distilbert"):
        found = tiny_checkpoint(other, tmp_path / other, LABELS)
        assert not can_narrow(found, load_model(found), model, UNSEEN * 2)
