"""Every ONNX scheme on tiny models: fidelity, what is stored how, sharing, determinism, errors."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import numpy_helper

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.runtimes import onnx_file
from edgebert.pipeline.schemes import SCHEMES, Scheme, SchemeError, find_scheme
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.onnx_loop import unroll
from edgebert.pipeline.stages.onnx_smooth import smooth
from edgebert.pipeline.stages.onnx_weights import gemm_to_matmul, quantize_symmetric
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.targets.errors import InputError

Array = npt.NDArray[np.float32]
Exported = tuple[Checkpoint, Model]
SHARING = (
    "dynamic_wi8c_afp32",
    "dynamic_wi8c_afp32_token",
    "static_wi8c_ai8_smooth",
    "weight_only_wi8b32",
    "weight_only_wi4b32",
    "weight_only_wi4b128_gptq",
)
INT8 = [  # those with ranges from training: test_quantize_aware.py
    scheme
    for scheme in SCHEMES
    if "onnx" in scheme.formats and scheme.weight_bits < 16 and not scheme.trained
]
# Matrices over 10,000 elements, and more depths than ALBERT has layers.
SIZES = {
    "vocab_size": 1000,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 128,
}


def rows(count: int = 12, vocabulary: int = 1000) -> tuple[TokenRow, ...]:
    generator = np.random.default_rng(1)
    lengths = generator.integers(4, 24, count)
    ids = [tuple(generator.integers(5, vocabulary, n).tolist()) for n in lengths]
    return tuple(
        TokenRow(row, (0,) * (len(row) // 2) + (1,) * (len(row) - len(row) // 2)) for row in ids
    )


def logits(model: Model, row: TokenRow, padding: int = 0) -> Array:
    """Logits [labels] of one row, padded as asked."""
    session = onnxruntime.InferenceSession(str(model.file), providers=["CPUExecutionProvider"])
    pad = (0,) * padding
    columns = {
        "input_ids": row.ids + pad,
        "attention_mask": (1,) * len(row.ids) + pad,
        "token_type_ids": row.type_ids + pad,
    }
    feed = {spec.name: np.array([columns[spec.name]]) for spec in model.info.inputs}
    return np.asarray(session.run(["logits"], feed)[0][0], np.float32)


@pytest.fixture(scope="module")
def bert(tiny_checkpoint: Callable[..., Checkpoint], tmp_path_factory: Any) -> Exported:
    folder = tmp_path_factory.mktemp("bert")
    checkpoint = tiny_checkpoint("bert", folder / "checkpoint", labels=7, **SIZES)
    return checkpoint, ExportOnnx()(checkpoint, folder / "fp32")


@pytest.fixture(scope="module")
def albert(tiny_checkpoint: Callable[..., Checkpoint], tmp_path_factory: Any) -> Exported:
    folder = tmp_path_factory.mktemp("albert")
    checkpoint = tiny_checkpoint(
        "albert", folder / "checkpoint", labels=7, **SIZES, embedding_size=64, num_hidden_layers=6
    )
    return checkpoint, ExportOnnx()(checkpoint, folder / "fp32")


@pytest.mark.parametrize("scheme", INT8, ids=lambda scheme: scheme.name)
def test_int8_scheme(bert: Exported, scheme: Scheme, tmp_path: Path, capfd: Any) -> None:
    checkpoint, fp32 = bert
    model = QuantizeOnnx(scheme)(checkpoint, fp32, rows(), tmp_path)
    assert capfd.readouterr().out == ""
    assert model.info.scheme == scheme.name
    assert (model.info.inputs, model.info.outputs) == (fp32.info.inputs, fp32.info.outputs)
    assert model.info.opset == fp32.info.opset
    assert model.info.ir_version == (10 if scheme.table_bits == 4 else fp32.info.ir_version)

    proto = onnx_file.load_proto(model.file)
    assert onnx_file.float_matrices(proto) == ()
    assert onnx_file.duplicates(proto) == ()
    scales = onnx_file.scales(proto)
    assert scales and all(0 < value < 1e4 for value in scales.values())
    assert (
        model.size_mb <= 0.36 * fp32.size_mb
    )  # tiny models have a large share of biases and nodes

    reference = np.stack([logits(fp32, row) for row in rows()])
    actual = np.stack([logits(model, row) for row in rows()])
    norms = np.linalg.norm(reference, axis=1) * np.linalg.norm(actual, axis=1)
    cosine = (reference * actual).sum(axis=1) / norms
    assert cosine.mean() > (0.96 if scheme.weight_bits == 4 else 0.99)
    # The artifact is not the fp32 model under another name.
    assert np.abs(reference - actual).max() > 1e-5


@pytest.mark.parametrize("name", SHARING)
def test_albert_layer_is_stored_once(albert: Exported, name: str, tmp_path: Path) -> None:
    checkpoint, fp32 = albert
    model = QuantizeOnnx(find_scheme(name, "onnx"))(checkpoint, fp32, rows(), tmp_path)
    proto = onnx_file.load_proto(model.file)
    assert onnx_file.duplicates(proto, larger_than=1000) == ()
    # One layer (4 * 128 * 128 + 2 * 128 * 256), pooler, a projection too small to quantize (fp32),
    # 1000 words and 128 positions of 64.
    stored = sum(t.size_bytes for t in onnx_file.stored_tensors(proto) if len(t.shape) > 1)
    assert stored < 1.2 * (131_072 + 16_384 + 4 * 8_192 + 72_192)
    source = (checkpoint.path / "model.safetensors").stat().st_size
    assert model.file.stat().st_size <= 0.5 * source
    assert np.isfinite(logits(model, rows()[0])).all()


def test_static_is_independent_of_padding(bert: Exported, tmp_path: Path) -> None:
    checkpoint, fp32 = bert
    model = QuantizeOnnx(find_scheme("static_wi8c_ai8", "onnx"))(checkpoint, fp32, rows(), tmp_path)
    assert np.abs(logits(model, rows()[0]) - logits(model, rows()[0], padding=30)).max() < 1e-4


def test_static_products_are_integer(bert: Exported, tmp_path: Path) -> None:
    """Query, key and value share one quantized input, which onnxruntime alone leaves in fp32."""
    checkpoint, fp32 = bert
    model = QuantizeOnnx(find_scheme("static_wi8c_ai8", "onnx"))(checkpoint, fp32, rows(), tmp_path)
    nodes = onnx_file.load_proto(model.file).graph.node
    types = [node.op_type for node in nodes]
    assert types.count("MatMulIntegerToFloat") == 2 * 6 + 2  # two layers; pooler and classifier
    assert types.count("MatMul") == 2 * 2  # scores and context
    assert types.count("QuantizeLinear") == 2 * 4 + 2  # one for query, key and value


@pytest.mark.parametrize(
    "name", ["dynamic_wi7c_afp32", "dynamic_wi7c_afp32_token", "static_wi7c_ai8_smooth"]
)
def test_reduced_range_cannot_saturate_16_bits(bert: Exported, name: str, tmp_path: Path) -> None:
    checkpoint, fp32 = bert
    model = QuantizeOnnx(find_scheme(name, "onnx"))(checkpoint, fp32, rows(), tmp_path)
    proto = onnx_file.load_proto(model.file)
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    weights = [n.input[1] for n in proto.graph.node if n.op_type.startswith("MatMulInteger")]
    largest = max(np.abs(numpy_helper.to_array(stored[w]).astype(int)).max() for w in weights)
    assert len(weights) >= 13  # a scale a token leaves the small classifier in fp32
    assert 2 * 255 * largest <= 32767


def test_fp16_is_finite_on_an_all_padding_row(bert: Exported, tmp_path: Path) -> None:
    checkpoint, fp32 = bert
    model = QuantizeOnnx(find_scheme("fp16", "onnx"))(checkpoint, fp32, (), tmp_path)
    assert model.size_mb < 0.56 * fp32.size_mb
    assert [spec.dtype for spec in model.info.inputs] == ["int64"] * 3
    assert [spec.dtype for spec in model.info.outputs] == ["float32"]
    batch = {
        "input_ids": np.array([[2, 5, 6, 7, 3, 0, 0, 0]] * 2),
        "attention_mask": np.array([[1] * 5 + [0] * 3, [0] * 8]),
        "token_type_ids": np.zeros((2, 8), np.int64),
    }

    def run(model: Model) -> Array:
        session = onnxruntime.InferenceSession(str(model.file), providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, batch)[0])

    half, full = run(model), run(fp32)
    assert np.isfinite(half).all()
    assert np.abs(half[0] - full[0]).max() < 1e-2


def test_fp16_constants_are_finite_in_half_precision(bert: Exported, tmp_path: Path) -> None:
    checkpoint, fp32 = bert
    model = QuantizeOnnx(find_scheme("fp16", "onnx"))(checkpoint, fp32, (), tmp_path)
    for tensor in onnx_file.load_proto(model.file).graph.initializer:
        value = numpy_helper.to_array(tensor)
        if value.dtype.kind == "f":
            assert np.abs(value).max(initial=0) <= 3e4, tensor.name


@pytest.mark.parametrize("name", ["dynamic_wi8c_afp32_token", "static_wi8c_ai8"])
def test_two_processes_give_the_same_bytes(albert: Exported, name: str, tmp_path: Path) -> None:
    checkpoint, fp32 = albert
    program = (
        "import sys; from pathlib import Path\n"
        "from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow\n"
        "from edgebert.pipeline.schemes import find_scheme\n"
        "from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx\n"
        "rows = [TokenRow(tuple(range(5, 5 + n)), (0,) * n) for n in (6, 9, 14)]\n"
        "checkpoint, fp32, out = (Path(a) for a in sys.argv[2:])\n"
        "scheme = find_scheme(sys.argv[1], 'onnx')\n"
        "QuantizeOnnx(scheme)(Checkpoint(checkpoint, 'x'), Model(fp32), rows, out)\n"
    )
    for out in ("a", "b"):
        command = [sys.executable, "-c", program, name, checkpoint.path, fp32.path, tmp_path / out]
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
    for file in ("model.onnx", "model.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_no_calibration_rows_is_an_input_error(bert: Exported, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 usable rows"):
        QuantizeOnnx(find_scheme("static_wi8c_ai8", "onnx"))(*bert, (), tmp_path)


@pytest.mark.parametrize("limits", [{"max_opset": 17}, {"max_ir_version": 8}])
def test_a_target_that_is_too_old_is_refused(
    bert: Exported, limits: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="the target takes"):
        QuantizeOnnx(find_scheme("dynamic_wi8c_afp32", "onnx"), **limits)(*bert, (), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_tool_names_scheme_and_tool(bert: Exported, tmp_path: Path) -> None:
    """Ids beyond the vocabulary make the calibration run fail inside onnxruntime."""
    beyond = [TokenRow((5000,) * 4, (0,) * 4)]
    for name in ("static_wi8c_ai8", "dynamic_wi8c_afp32_token"):
        with pytest.raises(SchemeError, match=f"(?s)failed: .*scheme {name}"):
            QuantizeOnnx(find_scheme(name, "onnx"))(*bert, beyond, tmp_path)


def test_smoothing_changes_no_value(albert: Exported) -> None:
    fp32 = albert[1]
    proto = unroll(onnx_file.load_proto(fp32.file))
    gemm_to_matmul(proto)
    names = [spec.name for spec in fp32.info.inputs]
    feeds = [
        dict(
            zip(names, (np.array([v]) for v in (r.ids, (1,) * len(r.ids), r.type_ids)), strict=True)
        )
        for r in rows()
    ]

    def run(proto: onnx.ModelProto) -> Array:
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        return np.concatenate([session.run(None, feed)[0] for feed in feeds])

    before = run(proto)
    tensors = {t.name: t.dims for t in proto.graph.initializer if len(t.dims) == 2}
    smooth(proto, feeds, 0.85)
    assert np.abs(run(proto) - before).max() < 1e-4 * np.abs(before).max()
    # As many matrices as before: layers that share a weight share its scale.
    assert len([t for t in proto.graph.initializer if len(t.dims) == 2]) == len(tensors)


MATRICES = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=70),
    elements=st.floats(-1e3, 1e3, width=32),
)


@given(MATRICES, st.sampled_from([0, 1]))
def test_symmetric_error_is_at_most_half_a_scale(value: Array, axis: int) -> None:
    q, scale = quantize_symmetric(value, axis)
    assert q.dtype == np.int8
    error = np.abs(q.astype(np.float64) * scale - value)
    assert (error <= scale * 0.5 * (1 + 1e-5) + 1e-30).all()
