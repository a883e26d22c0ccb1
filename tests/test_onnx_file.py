"""Reading .onnx files: what is stored, which scales and runtime, what int8 promises."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgebert.pipeline.runtimes import onnx_file
from edgebert.targets.errors import EdgebertError


def model(
    *tensors: onnx.TensorProto, nodes: tuple[onnx.NodeProto, ...] = (), opset: int = 20, ir: int = 9
) -> onnx.ModelProto:
    """x [batch, 200] -> y, with the tensors stored."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 200])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "g", [x], [y], initializer=list(tensors))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def stored(name: str, *shape: int, seed: int = 0, dtype: str = "float32") -> onnx.TensorProto:
    value = np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)
    return numpy_helper.from_array(value, name)


def test_stored_tensors_largest_first() -> None:
    tensors = onnx_file.stored_tensors(model(stored("a", 3), stored("b", 200, 60, dtype="int8")))
    assert [(t.name, t.dtype, t.elements, t.size_bytes) for t in tensors] == [
        ("b", "int8", 12_000, 12_000),
        ("a", "float", 3, 12),
    ]


def test_a_column_of_scales_is_no_matrix() -> None:
    proto = model(stored("column", 20_000, 1), stored("matrix", 200, 60), stored("small", 100, 100))
    assert [t.name for t in onnx_file.float_matrices(proto)] == ["matrix"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_check_names_what_is_left_in_floating_point(dtype: str) -> None:
    with pytest.raises(EdgebertError, match=r"1 matrices .* weight \[200, 60\]"):
        onnx_file.check_int8(model(stored("weight", 200, 60, dtype=dtype)), "here")


def test_check_names_copies() -> None:
    proto = model(stored("a", 200, 60, dtype="int8"), stored("b", 200, 60, dtype="int8"))
    assert onnx_file.duplicates(proto) == (("a", "b"),)
    with pytest.raises(EdgebertError, match=r"b \(as a\)"):
        onnx_file.check_int8(proto, "here")


@pytest.mark.parametrize("scale", [np.inf, np.nan, 1.3e36, 1e4])
def test_check_refuses_scales_of_a_mask_constant(scale: float) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])
    good = numpy_helper.from_array(np.float32(39.2), "scale")
    zero = numpy_helper.from_array(np.uint8(0), "zero")
    onnx_file.check_int8(model(good, zero, nodes=(node,)), "here")
    bad = numpy_helper.from_array(np.float32(scale), "scale")
    with pytest.raises(EdgebertError, match="scales out of range: scale"):
        onnx_file.check_int8(model(bad, zero, nodes=(node,)), "here")


@pytest.mark.parametrize(
    ("opset", "ir", "bits", "runtime"),
    [(17, 8, None, "1.12"), (18, 8, None, "1.14"), (20, 9, 4, "1.17"), (20, 9, 8, "1.22")],
)
def test_minimum_runtime(opset: int, ir: int, bits: int | None, runtime: str) -> None:
    node = helper.make_node("MatMulNBits", ["x"], ["y"], domain="com.microsoft", bits=bits or 0)
    proto = model(nodes=(node,) if bits else (), opset=opset, ir=ir)
    assert onnx_file.minimum_runtime(proto) == runtime


def test_operators_have_the_version_of_the_opset() -> None:
    nodes = (helper.make_node("Add", ["x", "x"], ["z"]), helper.make_node("Gelu", ["z"], ["y"]))
    assert onnx_file.operators(model(nodes=nodes)) == {"Add": 14, "Gelu": 20}


@pytest.mark.parametrize("content", [b"", b"no protobuf \xff\xff"])
def test_a_broken_file_is_one_message(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    with pytest.raises(EdgebertError, match="cannot read the ONNX file"):
        onnx_file.load_proto(file)
