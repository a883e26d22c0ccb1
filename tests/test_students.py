"""Students: what they inherit from their teachers, and that they load as plain checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.families import all_families
from edgebert.pipeline.stages.layer_sharing import final_parameters
from edgebert.pipeline.stages.load import count_parameters, load_model, resolve_model
from edgebert.pipeline.stages.students import (
    STUDENTS,
    albert_like,
    distilbert_like,
    make_student,
    tinybert,
)
from edgebert.pipeline.training_settings import StudentSettings
from edgebert.targets.errors import InputError

TinyCheckpoint = Callable[..., Checkpoint]
LABELS = ("bad", "so so", "good")
ROWS = tuple(
    Row(text, "good")
    for text in (
        "what is the weather",
        "play some good music now",
        "my bank account was not a good book",
        "the film was bad and long",
        "how many new cards do i have",
        "please tell me when the flight is",
    )
)


@pytest.fixture
def teacher(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> Checkpoint:
    return tiny_checkpoint("bert", tmp_path / "teacher", LABELS, num_hidden_layers=4)


def run(checkpoint: Checkpoint, text: str = ROWS[0].text, **inner: bool) -> Any:
    with torch.no_grad():
        return load_model(checkpoint)(
            input_ids=torch.tensor([checkpoint.tokenizer.encode(text).ids]), **inner
        )


def tensors(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_file(checkpoint.path / "model.safetensors")
    return found


@pytest.mark.parametrize("model_type", list(all_families()))
def test_distilbert_like_keeps_every_second_layer(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    depth = {"albert": {"num_hidden_layers": 6}, "distilbert": {"n_layers": 6}}
    fields = depth.get(model_type, {"num_hidden_layers": 6})
    teacher = tiny_checkpoint(model_type, tmp_path / "t", LABELS, **fields)
    student = distilbert_like(teacher, tmp_path / "s")
    assert student.config.num_hidden_layers == 3
    assert (student.labels, student.family) == (teacher.labels, teacher.family)
    ours, theirs = tensors(student), tensors(teacher)
    stored = teacher.family.layer_path.rpartition(".")[2]
    for name, tensor in ours.items():
        head, inside, rest = name.partition(f"{stored}.")
        index, _, tail = rest.partition(".")
        second = model_type != "modernbert"  # whose first layer is built in another way
        layer = 0 if model_type == "albert" else 2 * int(index or 0) + second
        origin = f"{head}{stored}.{layer}.{tail}" if inside else name
        assert torch.equal(tensor, theirs[origin]), name
    # Before the first layer both see the same.
    states = [run(each, output_hidden_states=True).hidden_states[0] for each in (student, teacher)]
    torch.testing.assert_close(states[0], states[1])


def test_albert_like_starts_from_the_teachers_layers(teacher: Checkpoint, tmp_path: Path) -> None:
    student = albert_like(teacher, ROWS, tmp_path / "s", embedding_size=32, vocabulary_size=130)
    assert student.config.vocab_size <= 130
    assert student.config.num_hidden_groups == 4
    assert student.labels == teacher.labels
    # With E = H nothing but the second normalization is lost: what goes into the layers is close.
    for row in ROWS:
        states = [run(each, row.text, output_hidden_states=True) for each in (student, teacher)]
        ours, theirs = (each.hidden_states[0] for each in states)
        error = (ours - theirs).pow(2).mean() / theirs.pow(2).mean()
        assert float(error) < 0.05
    # And the layers compute what the teacher's do.
    encoder, layers = load_model(student).albert.encoder, load_model(teacher).bert.encoder.layer
    state = torch.randn(1, 5, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for group, layer in zip(encoder.albert_layer_groups, layers, strict=True):
            ours, theirs = group(state, None), layer(state, None)
            ours, theirs = (x[0] if isinstance(x, tuple) else x for x in (ours, theirs))
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert final_parameters(student) < count_parameters(student) / 2


def test_albert_like_reads_any_text(teacher: Checkpoint, tmp_path: Path) -> None:
    student = albert_like(teacher, ROWS, tmp_path / "s", embedding_size=8, vocabulary_size=130)
    for text in ("", "zebra quilts!", "\u5929\u6c14", "a " * 200):
        ids = student.tokenizer.encode(text).ids[: student.max_length]
        assert max(ids) < student.config.vocab_size
        assert run(student, "zebra").logits.isfinite().all()
    loaded = resolve_model(str(student.path), work=tmp_path / "work")
    assert torch.equal(run(loaded).logits, run(student).logits)


@pytest.mark.parametrize("model_type", ["roberta", "distilbert", "deberta-v2", "electra"])
def test_albert_like_needs_a_teacher_laid_out_as_bert(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    teacher = tiny_checkpoint(model_type, tmp_path / "t", LABELS)
    with pytest.raises(InputError, match=f"takes its parts from a BERT; {model_type} has no"):
        albert_like(teacher, ROWS, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("model_type", ["bert", "roberta", "albert", "xlnet", "modernbert"])
def test_tinybert_has_the_teachers_word_vectors(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    teacher = tiny_checkpoint(model_type, tmp_path / "t", LABELS)
    student = tinybert(teacher, tmp_path / "s", hidden_size=24, intermediate_size=48, heads=4)
    assert (student.config.num_hidden_layers, student.config.hidden_size) == (4, 24)
    assert student.labels == teacher.labels
    assert run(student).logits.shape == (1, 3)
    name = teacher.family.embedding_path + ".weight"
    ours, theirs = (
        tensors(student)["bert.embeddings.word_embeddings.weight"],
        tensors(teacher)[name],
    )
    distances = [torch.cdist(each, each).flatten() for each in (ours, theirs)]
    assert float(torch.corrcoef(torch.stack(distances))[0, 1]) > 0.9


def test_tinybert_4_is_the_papers(teacher: Checkpoint, tmp_path: Path) -> None:
    config = make_student("tinybert-4", teacher, ROWS, tmp_path / "s").config
    sizes = (config.num_hidden_layers, config.hidden_size, config.intermediate_size)
    assert (*sizes, config.num_attention_heads) == (4, 312, 1200, 12)


def test_a_student_by_configuration(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> None:
    teacher = tiny_checkpoint("roberta", tmp_path / "t", LABELS, num_hidden_layers=4)
    file = tmp_path / "narrow.json"
    fields = {"model_type": "roberta", "hidden_size": 32, "num_hidden_layers": 2} | {
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "vocab_size": 5,
    }
    file.write_text(json.dumps(fields))
    student = make_student(str(file), teacher, ROWS, tmp_path / "s")
    assert student.config.vocab_size == teacher.config.vocab_size
    assert student.labels == teacher.labels
    ours, theirs = tensors(student), tensors(teacher)
    for ending in ("attention.self.query.weight", "output.LayerNorm.weight"):  # shapes agree
        for layer, origin in ((0, 1), (1, 3)):
            name = "roberta.encoder.layer.{}." + ending
            assert torch.equal(ours[name.format(layer)], theirs[name.format(origin)])
    again = make_student(str(file), teacher, ROWS, tmp_path / "again")
    assert again.sha256 == student.sha256
    assert make_student(str(file), teacher, ROWS, tmp_path / "3", seed=1).sha256 != student.sha256


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not readable as JSON"),
        ("{}", "no model_type"),
        ('{"model_type": "gpt2"}', "no family for model_type 'gpt2'"),
        (
            '{"model_type": "bert", "hidden_size": 32, "num_attention_heads": 5}',
            "5 attention heads do not divide the hidden size 32",
        ),
        ('{"model_type": "bert", "hidden_size": "wide"}', "not a valid configuration"),
    ],
)
def test_a_wrong_configuration_is_refused(
    teacher: Checkpoint, tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "student.json"
    file.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        make_student(str(file), teacher, ROWS, tmp_path / "s")
    assert str(file) in str(caught.value)


def test_a_pretrained_student_gets_a_head(
    tiny_checkpoint: TinyCheckpoint, teacher: Checkpoint, tmp_path: Path
) -> None:
    encoder = tiny_checkpoint("distilbert", tmp_path / "encoder", 2)
    whole = tensors(encoder)
    kept = {name: tensor for name, tensor in whole.items() if name.startswith("distilbert.")}
    save_file(kept, encoder.path / "model.safetensors", metadata={"format": "pt"})
    student = make_student(str(encoder.path), teacher, ROWS, tmp_path / "s")
    assert (student.labels, student.family.model_type) == (teacher.labels, "distilbert")
    assert all(torch.equal(tensors(student)[name], tensor) for name, tensor in kept.items())
    again = make_student(str(encoder.path), teacher, ROWS, tmp_path / "s2")
    assert torch.equal(run(again).logits, run(student).logits)


def test_a_student_with_a_head_of_its_own_keeps_it(
    tiny_checkpoint: TinyCheckpoint, teacher: Checkpoint, tmp_path: Path
) -> None:
    own = tiny_checkpoint("bert", tmp_path / "own", ["yes", "no"])
    assert make_student(str(own.path), teacher, ROWS, tmp_path / "s").labels == ("yes", "no")


def test_unknown_students_are_refused(teacher: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown student 'tinybert4'\nnearest: tinybert-4"):
        make_student("tinybert4", teacher, ROWS, tmp_path / "s")
    assert STUDENTS == ("albert-like", "distilbert-like", "tinybert-4")


def test_sizes_of_an_albert_are_settings(teacher: Checkpoint, tmp_path: Path) -> None:
    sizes = StudentSettings(embedding_size=16, vocabulary_size=100)
    config = make_student("albert-like", teacher, ROWS, tmp_path / "s", sizes).config
    assert (config.embedding_size, config.vocab_size) == (16, 100)
    with pytest.raises(InputError, match="a vocabulary of 20 is too small"):
        make_student(
            "albert-like", teacher, ROWS, tmp_path / "s", StudentSettings(vocabulary_size=20)
        )
