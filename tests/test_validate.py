"""The reference and the validation of real model files, end to end on tiny checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from edgebert.calibration import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.gates import Limits, judge
from edgebert.pipeline.stages import validate, workers
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.reference import Reference
from edgebert.pipeline.stages.validate import Validate
from edgebert.pipeline.stages.workers import share_out
from edgebert.targets.errors import InputError

LABELS = ("weather", "bank", "music")
TEXTS = [
    f"{start} {'the bank card ' * (i % 4)}{end} {i}"
    for i in range(4)
    for start in ("what is", "play me", "tell me", "i need")
    for end in ("weather", "new account", "my music")
]


@pytest.fixture(scope="module")
def checkpoint(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path_factory: pytest.TempPathFactory
) -> Checkpoint:
    return tiny_checkpoint("bert", tmp_path_factory.mktemp("checkpoint"), LABELS)


@pytest.fixture(scope="module")
def model(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return ExportOnnx()(checkpoint, tmp_path_factory.mktemp("model"))


def alone(checkpoint: Checkpoint, text: str) -> np.ndarray:
    """Logits of one text, in the plainest way."""
    ids = checkpoint.tokenizer.encode(text).ids[: checkpoint.max_length]
    with torch.no_grad():
        return np.asarray(load_model(checkpoint)(input_ids=torch.tensor([ids])).logits[0])


@pytest.fixture(scope="module")
def data(checkpoint: Checkpoint) -> Dataset:
    """Rows that the checkpoint itself labels right, in upper case, so that accuracy is 1."""
    labels = [LABELS[alone(checkpoint, text).argmax()].upper() for text in TEXTS]
    rows = tuple(Row(text, label) for text, label in zip(TEXTS, labels, strict=True))
    return Dataset("mine", (), rows[::2], rows, "")


def test_the_reference_is_pytorch_s_row_by_row(
    checkpoint: Checkpoint, data: Dataset, tmp_path: Path
) -> None:
    reference = Reference("test")(checkpoint, data, tmp_path)
    expected = np.stack([alone(checkpoint, text) for text in TEXTS])
    np.testing.assert_allclose(reference.logits.values, expected, atol=1e-5)
    assert reference.rows == list(range(len(TEXTS)))
    assert [file.name for file in tmp_path.iterdir()] == ["reference.npz"]


def test_the_reference_is_the_same_bytes_each_time_and_leaves_torch_as_it_was(
    checkpoint: Checkpoint, data: Dataset, tmp_path: Path
) -> None:
    threads = torch.get_num_threads()
    for name in ("a", "b"):
        Reference("dev")(checkpoint, data, tmp_path / name)
    first, second = ((tmp_path / name / "reference.npz").read_bytes() for name in ("a", "b"))
    assert first == second
    assert torch.get_num_threads() == threads


def test_a_subset_is_seeded_and_has_the_logits_of_its_rows(
    checkpoint: Checkpoint, data: Dataset, tmp_path: Path
) -> None:
    whole = Reference("test")(checkpoint, data, tmp_path / "whole")
    part = Reference("test", max_rows=10, seed=3)(checkpoint, data, tmp_path / "part")
    assert len(part.rows) == 10
    np.testing.assert_allclose(part.logits.values, whole.logits.values[part.rows], atol=1e-5)
    other = Reference("test", max_rows=10, seed=4)(checkpoint, data, tmp_path / "other")
    assert other.rows != part.rows


def test_a_split_without_rows_is_refused(
    checkpoint: Checkpoint, data: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no train rows"):
        Reference("train")(checkpoint, data, tmp_path)


def test_an_exported_model_has_no_drift(
    checkpoint: Checkpoint, model: Model, data: Dataset, tmp_path: Path
) -> None:
    reference = Reference("test")(checkpoint, data, tmp_path)
    report = Validate()(checkpoint, model, data, reference)
    assert report.metrics[0].reference == report.metrics[0].artifact == 1.0
    assert report.agreement == 1.0 and report.rows == len(TEXTS) and report.truncated == 0
    assert report.max_abs_logit is not None and report.max_abs_logit < 1e-4
    assert report.runtime.startswith("onnxruntime ") and report.padding == "none, batch 1"
    assert {row.label for row in report.labels} == {str(row.label).lower() for row in data.test}
    assert judge(Limits(0.2), "onnx", report)[0].passed


def test_a_tflite_file_is_measured_with_its_own_padding_and_length(
    checkpoint: Checkpoint, data: Dataset, tmp_path: Path
) -> None:
    model = ExportLitert((16, 32))(checkpoint, tmp_path / "model")
    reference = Reference("test")(checkpoint, data, tmp_path / "reference")
    report = Validate()(checkpoint, model, data, reference)
    assert report.runtime.startswith("ai-edge-litert ") and "16, 32 tokens" in report.padding
    assert report.max_abs_logit is not None and report.max_abs_logit < 1e-4
    long = Dataset("mine", (), (), (Row("weather " * 40, "bank"), *data.test), "")
    reference = Reference("test")(checkpoint, long, tmp_path / "long")
    report = Validate()(checkpoint, model, long, reference)
    # The checkpoint reads the whole text, the device 32 tokens of it: that is drift too.
    assert report.truncated == 1 and report.max_abs_logit is not None
    assert report.max_abs_logit > 1e-4
    assert "longer than the 32 tokens" in " ".join(report.notes)


def test_how_many_sessions_share_the_rows_changes_nothing(
    checkpoint: Checkpoint,
    model: Model,
    data: Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference = Reference("test")(checkpoint, data, tmp_path)
    reports = []
    for cores in (1, 3):
        monkeypatch.setattr(validate, "core_count", lambda cores=cores: cores)
        reports.append(Validate()(checkpoint, model, data, reference))
    assert reports[0] == reports[1]


def damaged(model: Model, folder: Path, damage: Callable[[np.ndarray], np.ndarray]) -> Model:
    """The model with every matrix of its graph damaged."""
    graph = onnx.load(model.file)
    for tensor in graph.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.ndim == 2 and values.dtype == np.float32:
            changed = damage(values).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
    folder.mkdir()
    onnx.save(graph, folder / "model.onnx")
    return Model.write_info(folder, model.info)


def test_damaged_weights_fail_the_drift_gate(
    checkpoint: Checkpoint, model: Model, data: Dataset, tmp_path: Path
) -> None:
    reference = Reference("test")(checkpoint, data, tmp_path / "reference")
    random = np.random.default_rng(0)
    noisy = damaged(model, tmp_path / "noisy", lambda w: w + random.normal(size=w.shape) * w.std())
    report = Validate()(checkpoint, noisy, data, reference)
    (gate,) = judge(Limits(0.05), "onnx", report)
    assert not gate.passed and report.agreement is not None and report.agreement < 1
    assert report.worst[0].reference != report.worst[0].artifact
    broken = damaged(model, tmp_path / "broken", lambda w: w * np.inf)
    report = Validate()(checkpoint, broken, data, reference)
    assert report.nonfinite_rows == report.rows
    assert not judge(Limits(0.99), "onnx", report)[0].passed


def test_truncated_rows_are_counted_and_told(
    checkpoint: Checkpoint, model: Model, tmp_path: Path
) -> None:
    long = " ".join(["weather"] * 600)
    rows = (Row(long, "bank"), Row("play music", "music"), Row("my bank", "bank"))
    data = Dataset("mine", (), (), rows, "", notes=("a note of the data",))
    reference = Reference("test")(checkpoint, data, tmp_path)
    report = Validate()(checkpoint, model, data, reference)
    assert report.truncated == 1
    limit = checkpoint.max_length
    assert f"1 of 3 rows are longer than the {limit} tokens" in " ".join(report.notes)
    assert "a note of the data" in report.notes
    assert report.max_abs_logit is not None and report.max_abs_logit < 1e-4


def test_an_unknown_label_and_a_refused_file_are_user_errors(
    checkpoint: Checkpoint, model: Model, data: Dataset, tmp_path: Path
) -> None:
    rows = (Row("play music", "musik", where="test.csv, line 2"),)
    strange = Dataset("mine", (), (), rows, "")
    reference = Reference("test")(checkpoint, strange, tmp_path / "reference")
    with pytest.raises(InputError, match=r"'musik'\ntest.csv, line 2\n.*music"):
        Validate()(checkpoint, model, strange, reference)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "model.onnx").write_bytes(model.file.read_bytes()[:1000])
    half = Model.write_info(tmp_path / "cut", model.info)
    with pytest.raises(InputError, match="cannot load"):
        Validate()(checkpoint, half, strange, reference)


def test_words_of_a_token_classifier(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    tags = ("O", "B-LOC", "I-LOC")
    checkpoint = tiny_checkpoint("bert", tmp_path / "checkpoint", tags, task="token")
    assert checkpoint.task == "token"
    words = ("fly", "me", "to", "reykjavik", "please")
    rows = (
        Row(" ".join(words), ("O", "O", "O", "b-loc", "-100"), tokens=words),
        Row("my bank", ("O", "B-LOC"), tokens=("my", "bank")),
    )
    data = Dataset("mine", (), (), rows, "")
    reference = Reference("test")(checkpoint, data, tmp_path / "reference")
    assert reference.logits.word.tolist() == [0, 1, 2, 3, 4, 0, 1]
    encoded = checkpoint.tokenizer.encode(list(words), is_pretokenized=True)
    first = encoded.word_ids.index(3)  # "reykjavik" is spelled out in several tokens
    assert encoded.word_ids.count(3) > 1
    with torch.no_grad():
        logits: Any = load_model(checkpoint)(input_ids=torch.tensor([encoded.ids])).logits[0]
    np.testing.assert_allclose(reference.logits.values[3], logits[first], atol=1e-5)
    model = ExportOnnx()(checkpoint, tmp_path / "model")
    report = Validate()(checkpoint, model, data, reference)
    assert report.task == "token" and report.agreement == 1.0 and report.rows == 2
    assert sum(row.rows for row in report.labels) == 6


def test_a_report_survives_json(
    checkpoint: Checkpoint, model: Model, data: Dataset, tmp_path: Path
) -> None:
    reference = Reference("dev")(checkpoint, data, tmp_path)
    report = Validate()(checkpoint, model, data, reference)
    assert type(report).model_validate(json.loads(report.model_dump_json())) == report


def test_workers_do_every_item_once_and_pass_errors_on() -> None:
    done: list[int] = []
    share_out(range(100), [done.append] * 4)
    assert sorted(done) == list(range(100))
    assert workers.core_count() >= 1

    def fail(item: int) -> None:
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        share_out([0], [fail])
