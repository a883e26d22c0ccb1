"""The same text alone, padded and in a batch: what may change its answer, and what may not."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages import export_onnx
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx

TinyCheckpoint = Callable[..., Checkpoint]
SIZES = {"vocab_size": 400, "hidden_size": 64, "intermediate_size": 256}
TEXTS = [list(range(first, first + count)) for first, count in ((6, 9), (30, 17), (60, 5))]


def logits(model: Model, texts: list[list[int]], length: int) -> np.ndarray:
    """Logits [text, label] of texts in one batch, padded on the right."""
    session = onnxruntime.InferenceSession(str(model.file), providers=["CPUExecutionProvider"])
    feeds = {i.name: np.zeros((len(texts), length), np.int64) for i in session.get_inputs()}
    for row, ids in enumerate(texts):
        feeds["input_ids"][row, : len(ids)] = ids
        feeds["attention_mask"][row, : len(ids)] = 1
    result: np.ndarray = session.run(["logits"], feeds)[0]
    return result


def quantized(checkpoint: Checkpoint, scheme: str, folder: Path) -> Model:
    fp32 = ExportOnnx()(checkpoint, folder / "fp32")
    return QuantizeOnnx(find_scheme(scheme, "onnx"))(checkpoint, fp32, (), folder / scheme)


def worst(model: Model, length: int, batch: bool) -> float:
    """Largest change of a logit by padding to a length, alone or with the other texts."""
    alone = np.concatenate([logits(model, [ids], len(ids)) for ids in TEXTS])
    parts = [TEXTS] if batch else [[ids] for ids in TEXTS]
    padded = np.concatenate([logits(model, texts, length) for texts in parts])
    return float(np.abs(padded - alone).max())


@pytest.mark.parametrize("model_type", ["albert", "bert"])
def test_padding_changes_no_dynamic_scale(
    model_type: str, tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "checkpoint", **SIZES)
    model = quantized(checkpoint, "dynamic_wi8c_afp32", tmp_path)
    assert worst(model, 40, batch=False) < 1e-5
    assert worst(model, 40, batch=True) > 1e-3  # one scale for all: neighbors still do


def test_it_did_before(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "checkpoint", **SIZES)
    monkeypatch.setattr(export_onnx, "padding_as_first_token", contextlib.nullcontext)
    assert worst(quantized(checkpoint, "dynamic_wi8c_afp32", tmp_path), 40, batch=False) > 1e-3


@pytest.mark.parametrize(
    ("model_type", "scheme"),
    [
        ("albert", "dynamic_wi8c_afp32_token"),
        ("bert", "dynamic_wi7c_afp32_token"),
        ("bert", "weight_only_wi8b32"),
    ],
)
def test_with_a_scale_a_token_neighbors_change_nothing(
    model_type: str, scheme: str, tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "checkpoint", **SIZES)
    model = quantized(checkpoint, scheme, tmp_path)
    for length in (40, 41):  # kernels take rows by two or four, and the last ones alone
        assert worst(model, length, batch=False) < 1e-5
        assert worst(model, length, batch=True) < 1e-5
    fp32 = Model(tmp_path / "fp32")
    assert np.abs(logits(model, TEXTS, 40) - logits(fp32, TEXTS, 40)).max() < 0.05
