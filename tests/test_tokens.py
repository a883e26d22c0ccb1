"""A scale a token: what is computed, row by row, against numpy; the rows that smoothing takes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgebert.pipeline.artifact import Checkpoint, TokenRow
from edgebert.pipeline.runtimes import onnx_file
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.onnx_tokens import LOW, MIDDLE, quantize_tokens
from edgebert.pipeline.stages.onnx_weights import quantize_symmetric
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.stages.random_rows import random_rows

Array = npt.NDArray[np.float32]
TinyCheckpoint = Callable[..., Checkpoint]
SIZES = {"vocab_size": 400, "hidden_size": 128, "intermediate_size": 256}


def product(matrix: Array, activation: str) -> onnx.ModelProto:
    """activation(x) @ matrix, x [batch, seq, K]."""
    shapes = {"x": ["batch", "seq", matrix.shape[0]], "y": ["batch", "seq", matrix.shape[1]]}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items())
    nodes = [
        helper.make_node(activation, ["x"], ["a"], "activation"),
        helper.make_node("MatMul", ["a", "w"], ["y"], "product"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(matrix, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(proto: onnx.ModelProto, x: Array) -> Array:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize(
    ("activation", "zero", "bits"), [("Identity", MIDDLE, 8), ("Gelu", LOW, 8), ("Relu", LOW, 7)]
)
def test_rows_are_quantized_by_their_own_range(activation: str, zero: int, bits: int) -> None:
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(128, 96)).astype(np.float32)
    x = generator.normal(size=(2, 5, 128)).astype(np.float32)
    x *= np.array([1e-3, 1, 30, 2, 5], np.float32)[:, None]  # what one scale could not hold
    x[0, 3, 7] = 400
    x[1, 3] = 0
    a = run(product(np.eye(128, dtype=np.float32), activation), x).astype(np.float64)
    proto = product(matrix, activation)
    quantize_tokens(proto, bits)
    actual = run(proto, x)

    q, scale = quantize_symmetric(matrix, 1, bits)
    assert np.abs(q.astype(int)).max() == 2 ** (bits - 1) - 1
    step = np.abs(a).max(axis=-1, keepdims=True) / (255 - zero)
    if zero == LOW:
        step = np.maximum(step, 0.1701 / zero)  # GELU's lowest value is not clipped
    rounded = np.rint(np.divide(a, step, out=np.zeros_like(a), where=step > 0)) * step
    expected = rounded @ (q * scale.astype(np.float64))
    # a value halfway between two steps may go to either
    assert (np.abs(actual - expected) <= 1.01 * step * np.abs(matrix).max()).all()
    assert np.median(np.abs(actual - expected)) < 1e-5
    assert (actual[1, 3] == 0).all()
    alone = [run(proto, x[i : i + 1, j : j + 1]) for i in range(2) for j in range(5)]
    np.testing.assert_array_equal(np.concatenate(alone).reshape(actual.shape), actual)


@pytest.mark.parametrize("settings", [{}, {"approximate": "tanh"}])
def test_the_lowest_value_of_gelu_is_not_clipped(settings: dict[str, str]) -> None:
    proto = product(np.eye(128, dtype=np.float32), "Gelu")
    proto.graph.node[0].attribute.extend(helper.make_attribute(*pair) for pair in settings.items())
    x = np.linspace(-4, 0, 128, dtype=np.float32)[None, None]
    fp32 = run(proto, x)
    assert fp32.min() == pytest.approx(-0.17, abs=1e-3)
    quantize_tokens(proto)
    assert np.abs(run(proto, x) - fp32).max() <= 0.51 * 0.1701 / LOW


@pytest.mark.parametrize("model_type", ["bert", "albert"])
def test_what_layer_norm_gives_is_smoothed(
    model_type: str, tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "checkpoint", **SIZES)
    fp32 = ExportOnnx()(checkpoint, tmp_path / "fp32")
    stage = QuantizeOnnx(find_scheme("dynamic_wi8c_afp32_token", "onnx"))
    texts = (TokenRow(tuple(range(6, 20)), (0,) * 14),)
    model = stage(checkpoint, fp32, (), tmp_path / "random")
    assert model.sha256 == stage(checkpoint, fp32, (), tmp_path / "again").sha256
    assert model.sha256 != stage(checkpoint, fp32, texts, tmp_path / "texts").sha256
    proto = onnx_file.load_proto(model.file)
    nodes = [node for node in onnx_file.all_nodes(proto.graph)]
    smoothed = [n for n in nodes if n.op_type == "Mul" and n.output[0].endswith("_smooth")]
    rounded = [n for n in nodes if n.op_type == "QuantizeLinear"]
    layers = 2 if model_type == "bert" else 1  # the shared layer is in the graph once
    first = 1 if model_type == "bert" else 0  # padding is filled between LayerNorm and layer 0
    assert len(rounded) >= 4 * layers  # query, key and value share one
    assert len(smoothed) == 2 * layers - first
    assert ("Loop" in model.info.operators) == (model_type == "albert")


def test_random_rows_are_texts_to_the_model(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path, **SIZES)
    rows = random_rows(checkpoint)
    assert rows == random_rows(checkpoint)
    first, last = checkpoint.tokenizer.encode("").ids
    assert {(row.ids[0], row.ids[-1]) for row in rows} == {(first, last)}
    assert {len(row.ids) for row in rows} == {8, 16, 24, 32}
    assert max(max(row.ids) for row in rows) < checkpoint.config.vocab_size
