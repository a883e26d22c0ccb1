"""Quantized TFLite: what is stored in int8, scales, versions, and how far the logits move."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema
from safetensors.torch import load_file, save_file

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.runtimes.run import open_session
from edgebert.pipeline.runtimes.stored_tensor import LARGE
from edgebert.pipeline.runtimes.tflite_file import TfliteFile
from edgebert.pipeline.runtimes.tflite_rewrite import merge_rounding_twins
from edgebert.pipeline.runtimes.tflite_versions import newest_versions
from edgebert.pipeline.schemes import SchemeError, find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.quantize_litert import MAX_SCALE, QuantizeLitert, check_stored
from edgebert.targets.errors import InputError

# Matrices over 10,000 elements: word table, positions, intermediate and output.
BERT = {
    "vocab_size": 400,
    "hidden_size": 64,
    "intermediate_size": 256,
    "max_position_embeddings": 200,
}
# scheme -> largest error, as a share of the largest logit
SCHEMES = {
    "dynamic_wi8c_afp32": 0.05,
    "dynamic_wi8t_afp32": 0.10,
    "dynamic_wi8c_hr_afp32": 0.05,
    "weight_only_wi8c_afp32": 0.05,
}


def token_rows(count: int, longest: int) -> list[TokenRow]:
    generator = np.random.default_rng(0)
    lengths = generator.integers(3, longest + 1, count)
    return [
        TokenRow(tuple(generator.integers(10, 150, n).tolist()), (0,) * int(n)) for n in lengths
    ]


def logits(model: Model, rows: list[TokenRow]) -> np.ndarray[Any, Any]:
    session = open_session(model.file)
    return np.stack([session.logits(row.ids, row.type_ids) for row in rows])


@pytest.fixture(scope="module")
def bert(
    tiny_checkpoint: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkpoint, Model]:
    folder = tmp_path_factory.mktemp("bert")
    checkpoint = tiny_checkpoint("bert", folder / "checkpoint", **BERT)
    return checkpoint, ExportLitert((8, 24))(checkpoint, folder / "fp32")


@pytest.mark.parametrize("name", SCHEMES)
def test_scheme(name: str, bert: tuple[Checkpoint, Model], tmp_path: Path) -> None:
    checkpoint, fp32 = bert
    model = QuantizeLitert(find_scheme(name, "tflite"))(checkpoint, fp32, (), tmp_path)
    tflite = TfliteFile(model.file)
    assert model.info.scheme == name
    assert model.info.lengths == (8, 24)
    large = [tensor for tensor in tflite.stored if tensor.is_large]
    assert {tensor.dtype for tensor in large} == {"int8"}
    assert {(400, 64), (200, 64), (256, 64), (64, 256)} <= {tensor.shape for tensor in large}
    assert len({tensor.sha256 for tensor in tflite.stored}) == len(tflite.stored)
    scales = [scale for scales in tflite.scales.values() for scale in scales]
    assert np.isfinite(scales).all()
    assert max(scales) < MAX_SCALE
    rows = token_rows(20, 24)
    expected = logits(fp32, rows)
    assert 0 < np.abs(logits(model, rows) - expected).max() < SCHEMES[name] * np.abs(expected).max()


@pytest.mark.parametrize(
    ("name", "limit"), [("weight_only_wi8c_afp32", 0.02), ("dynamic_wi8c_hr_afp32", 0.05)]
)
def test_the_table_of_token_types_stays_in_fp32(
    name: str, limit: float, tiny_checkpoint: Any, tmp_path: Path
) -> None:
    """One large channel of it would cost every token as much as the word table's rounding."""
    checkpoint = tiny_checkpoint("bert", tmp_path / "checkpoint", **BERT)
    file = checkpoint.path / "model.safetensors"
    weights = load_file(file)
    table = next(value for key, value in weights.items() if "token_type_embeddings" in key)
    table[:, 3] = 2.0  # the others are about 0.02
    save_file(weights, file, {"format": "pt"})
    fp32 = ExportLitert((24,))(checkpoint, tmp_path / "fp32")
    model = QuantizeLitert(find_scheme(name, "tflite"))(checkpoint, fp32, (), tmp_path / name)
    stored = {tensor.shape: tensor.dtype for tensor in TfliteFile(model.file).stored}
    assert stored[(2, 64)] == "float32"
    assert (stored[(400, 64)], stored[(200, 64)]) == ("int8", "int8")
    rows = token_rows(20, 24)
    expected = logits(fp32, rows)
    assert np.abs(logits(model, rows) - expected).max() < limit * np.abs(expected).max()


def test_old_runtimes_are_refused(bert: tuple[Checkpoint, Model], tmp_path: Path) -> None:
    # tflite-runtime 2.14 reads one scale of many and is silently wrong: the versions must say so.
    checkpoint, fp32 = bert
    limits = newest_versions("2.14")
    with pytest.raises(InputError, match="FULLY_CONNECTED version 12"):
        QuantizeLitert(find_scheme("dynamic_wi8c_afp32", "tflite"), limits)(
            checkpoint, fp32, (), tmp_path / "c"
        )
    for name in ("dynamic_wi8t_afp32", "weight_only_wi8c_afp32"):
        model = QuantizeLitert(find_scheme(name, "tflite"), limits)(
            checkpoint, fp32, (), tmp_path / name
        )
        assert model.info.minimum_runtime == "TensorFlow Lite 2.9"


def test_same_input_gives_same_bytes(bert: tuple[Checkpoint, Model], tmp_path: Path) -> None:
    stage = QuantizeLitert(find_scheme("dynamic_wi8c_afp32", "tflite"))
    first, second = (stage(*bert, (), tmp_path / name) for name in ("a", "b"))
    assert first.sha256 == second.sha256


@pytest.mark.parametrize(("family", "config"), [("bert", BERT), ("albert", {"hidden_size": 64})])
def test_static(family: str, config: Any, tiny_checkpoint: Any, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint(family, tmp_path / "checkpoint", **config)
    fp32 = ExportLitert((8, 24))(checkpoint, tmp_path / "fp32")
    rows = token_rows(32, 24)
    stage = QuantizeLitert(find_scheme("static_wi8c_ai8", "tflite"))
    model = stage(checkpoint, fp32, rows, tmp_path / "int8")
    tflite = TfliteFile(model.file)
    assert model.info.lengths == (8, 24)
    assert model.info.outputs[0].dtype == "float32"
    assert {"QUANTIZE", "DEQUANTIZE"} <= set(model.info.operators)
    assert not [t for t in tflite.stored if t.is_large and t.dtype != "int8"]
    # All lengths share the weights.
    large = [t.shape for t in tflite.stored if t.dtype == "int8" and t.size_bytes > 1000]
    trained = load_model(checkpoint)
    tables = [m.weight for m in trained.modules() if isinstance(m, torch.nn.Embedding)]
    small = {id(table) for table in tables if table.numel() <= LARGE}  # stay in fp32
    weights = [
        tuple(p.shape) for p in trained.parameters() if p.numel() > 1000 and id(p) not in small
    ]
    assert sorted(large) == sorted(weights)
    scales = [scale for scales in tflite.scales.values() for scale in scales]
    assert max(scales) < 10, "the mask constant entered a scale"
    expected, found = logits(fp32, rows), logits(model, rows)
    cosines = torch.nn.functional.cosine_similarity(
        torch.from_numpy(expected), torch.from_numpy(found)
    )
    assert cosines.mean() > 0.95


def test_calibration_needs_rows(bert: tuple[Checkpoint, Model], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 usable rows"):
        QuantizeLitert(find_scheme("static_wi8c_ai8", "tflite"))(*bert, (), tmp_path)


def test_a_matrix_left_in_fp32_is_refused(bert: tuple[Checkpoint, Model]) -> None:
    scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
    with pytest.raises(SchemeError, match="not stored in int8"):
        check_stored(TfliteFile(bert[1].file), scheme)


def test_an_infinite_scale_is_refused(bert: tuple[Checkpoint, Model], tmp_path: Path) -> None:
    scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
    tflite = TfliteFile(QuantizeLitert(scheme)(*bert, (), tmp_path).file)
    tensor = next(t for g in tflite.model.subgraphs for t in g.tensors if t.quantization)
    tensor.quantization.scale = np.array([np.inf], np.float32)
    with pytest.raises(SchemeError, match="scale of inf"):
        check_stored(tflite, scheme)


@pytest.mark.parametrize(("changed", "merged"), [(1, True), (4_000, False)])
def test_weights_that_differ_by_rounding_are_stored_once(
    changed: int, merged: bool, bert: tuple[Checkpoint, Model], tmp_path: Path
) -> None:
    stage = QuantizeLitert(find_scheme("dynamic_wi8c_afp32", "tflite"), rolled=False)
    model = TfliteFile(stage(*bert, (), tmp_path / "int8").file).model
    users = [
        tensor
        for graph in model.subgraphs
        for tensor in graph.tensors
        if tensor.type == schema.TensorType.INT8
        and model.buffers[tensor.buffer].data is not None
        and len(model.buffers[tensor.buffer].data) > LARGE
    ]
    original = users[0].buffer
    same = [tensor for tensor in users if tensor.buffer == original]
    assert len(same) > 1, "two lengths share it"
    twin = copy.copy(model.buffers[original])
    values = np.frombuffer(bytes(twin.data), np.int8).copy()
    values[:changed] += np.where(values[:changed] < 127, 1, -1).astype(np.int8)
    twin.data = values.view(np.uint8)
    model.buffers.append(twin)
    same[-1].buffer = len(model.buffers) - 1
    merge_rounding_twins(model)
    assert (same[-1].buffer == original) == merged
