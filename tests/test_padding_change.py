"""How much padding and neighbors change an answer: measured, and told."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgebert.calibration import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.runtimes.run import open_session
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.padding_change import padding_change
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.stages.reference import Reference
from edgebert.pipeline.stages.validate import Validate

TinyCheckpoint = Callable[..., Checkpoint]
SIZES = {"vocab_size": 400, "hidden_size": 64, "intermediate_size": 256}
ROWS = [(list(range(first, first + n)), [0] * n) for first, n in ((6, 9), (30, 17), (60, 5))]


@pytest.fixture(scope="module")
def checkpoint(
    tiny_checkpoint: TinyCheckpoint, tmp_path_factory: pytest.TempPathFactory
) -> Checkpoint:
    return tiny_checkpoint("bert", tmp_path_factory.mktemp("checkpoint"), **SIZES)


@pytest.fixture(scope="module")
def fp32(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return ExportOnnx()(checkpoint, tmp_path_factory.mktemp("fp32"))


def test_it_is_the_largest_change_of_a_probability(
    checkpoint: Checkpoint, fp32: Model, tmp_path: Path
) -> None:
    model = QuantizeOnnx(find_scheme("dynamic_wi8c_afp32", "onnx"))(checkpoint, fp32, (), tmp_path)
    session = open_session(model.file)
    found = padding_change(session, ROWS, "single_label", checkpoint.max_length)
    assert found is not None
    feeds = [session.feed(*row, padded=17)[0] for row in ROWS]
    batch = session.run({name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]})
    alone = np.stack([session.logits(*row) for row in ROWS])
    shares = [np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (alone, batch)]
    assert found.batch == pytest.approx(np.abs(shares[0] - shares[1]).max(), rel=1e-3)
    assert found.padded < 1e-3 < (found.batch or 0)
    assert (found.rows, found.batch_rows, found.tokens) == (3, 3, min(128, checkpoint.max_length))


def test_fp32_depends_on_neither(checkpoint: Checkpoint, fp32: Model) -> None:
    session = open_session(fp32.file)
    found = padding_change(session, ROWS, "single_label", checkpoint.max_length)
    assert found is not None
    assert max(found.padded, found.batch or 0) < 1e-6


def test_tokens_are_compared_with_themselves_whatever_the_padding(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    labels = ("O", "B-PER", "I-PER")
    tagger = tiny_checkpoint("bert", tmp_path / "tagger", labels, task="token", **SIZES)
    for stage, batches in ((ExportOnnx(), True), (ExportLitert(lengths=(16, 32)), False)):
        model = stage(tagger, tmp_path / type(stage).__name__)
        found = padding_change(open_session(model.file), ROWS, "token", tagger.max_length)
        assert found is not None
        assert found.padded < 1e-5
        assert (found.batch is not None) == batches
        assert max(found.batch or 0, found.padded) < 1e-5


def test_rows_as_long_as_the_model_takes_cannot_be_padded(fp32: Model) -> None:
    assert padding_change(open_session(fp32.file), ROWS, "single_label", 5) is None


def test_the_report_says_it_and_warns(checkpoint: Checkpoint, fp32: Model, tmp_path: Path) -> None:
    texts = [f"what is {'the bank card ' * n}weather {n}" for n in range(8)]
    rows = tuple(Row(text, checkpoint.labels[n % 2]) for n, text in enumerate(texts))
    data = Dataset("mine", (), rows, rows, "")
    model = QuantizeOnnx(find_scheme("dynamic_wi8c_afp32", "onnx"))(
        checkpoint, fp32, (), tmp_path / "int8"
    )
    for split in ("dev", "test"):
        reference = Reference(split)(checkpoint, data, tmp_path / split)
        report = Validate()(checkpoint, model, data, reference)
        assert (report.padding_change is not None) == (split == "test")
        assert any("run texts alone" in note for note in report.notes) == (split == "test")
