"""Passes over an ONNX graph that change how weights are stored.

They work on initializers by name, so what several nodes share (ALBERT's layer) is still shared
afterwards.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from edgebert.pipeline.runtimes.onnx_file import float_matrices
from edgebert.pipeline.runtimes.stored_tensor import LARGE, layer_name

Array = npt.NDArray[np.float32]
# Inputs of one run by name, each [1, seq].
Feed = Mapping[str, npt.NDArray[np.int64]]


def initializers(proto: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    """Stored tensors by name."""
    return {tensor.name: tensor for tensor in proto.graph.initializer}


def weight(proto: onnx.ModelProto, name: str) -> Array | None:
    """The stored fp32 matrix of that name, None where there is none."""
    tensor = initializers(proto).get(name)
    if tensor is None or tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.dims) != 2:
        return None
    matrix: Array = numpy_helper.to_array(tensor)
    return matrix


def stored_matrix(proto: onnx.ModelProto, node: onnx.NodeProto) -> Array | None:
    """The large matrix [inputs, outputs] that a MatMul multiplies by; None for any other node."""
    matrix = weight(proto, node.input[1]) if node.op_type == "MatMul" else None
    return None if matrix is None or matrix.size <= LARGE else matrix


def stored_matmuls(proto: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The MatMuls whose second operand is a stored fp32 matrix."""
    return [
        node
        for node in proto.graph.node
        if node.op_type == "MatMul" and weight(proto, node.input[1]) is not None
    ]


def store(proto: onnx.ModelProto, name: str, value: npt.NDArray[np.generic]) -> str:
    """Add an initializer unless it is there already; returns its name."""
    if name not in initializers(proto):
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    return name


def reachable(proto: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes that an output of the graph depends on, in their order."""
    wanted = {output.name for output in proto.graph.output}
    kept = []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted |= set(node.input)
            kept.append(node)
    return kept[::-1]


def replace_nodes(proto: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Set the nodes of the graph and drop what nothing reads any more."""
    kept = list(nodes)
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    tidy(proto)


def tidy(proto: onnx.ModelProto) -> None:
    """Drop unused initializers, shape annotations and unused operator domains."""
    used = {name for node in proto.graph.node for name in node.input}
    used |= {output.name for output in proto.graph.output}
    kept = [tensor for tensor in proto.graph.initializer if tensor.name in used]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    del proto.graph.value_info[:]
    domains = {"" if node.domain == "ai.onnx" else node.domain for node in proto.graph.node} | {""}
    versions = {entry.domain: entry.version for entry in proto.opset_import}
    del proto.opset_import[:]
    for domain in sorted(domains):
        proto.opset_import.append(helper.make_opsetid(domain, versions.get(domain, 1)))


def gemm_to_matmul(proto: onnx.ModelProto) -> None:
    """Write Gemm (the head) as MatMul and Add: the one form that every quantizer takes."""
    nodes = []
    for node in proto.graph.node:
        settings = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        plain = settings.get("alpha", 1.0) == settings.get("beta", 1.0) == 1.0
        matrix = weight(proto, node.input[1]) if node.op_type == "Gemm" else None
        if matrix is None or not plain or settings.get("transA", 0):
            nodes.append(node)
            continue
        name = node.input[1]
        if settings.get("transB", 0):
            name = store(proto, f"{name}_transposed", np.ascontiguousarray(matrix.T))
        biased = len(node.input) > 2
        product = f"{node.output[0]}_product" if biased else node.output[0]
        nodes.append(helper.make_node("MatMul", [node.input[0], name], [product], node.name))
        if biased:
            add = [product, node.input[2]]
            nodes.append(helper.make_node("Add", add, list(node.output), f"{node.name}_bias"))
    replace_nodes(proto, nodes)


def quantize_symmetric(
    value: Array, axis: int, bits: int = 8
) -> tuple[npt.NDArray[np.int8], Array]:
    """Symmetric int8 with one scale along `axis`: value = q * scale, |error| <= scale / 2.

    Args:
        value: what to quantize.
        axis: the dimension that has a scale each.
        bits: of the 8 that are used.

    Returns:
        q as `value`, and the scales with the other dimensions kept as 1.
    """
    others = tuple(index for index in range(value.ndim) if index != axis % value.ndim)
    most = 2 ** (bits - 1) - 1
    largest = np.abs(value).max(axis=others, keepdims=True)
    # A constant stays exact whatever its scale, so an all-zero slice takes 1; below the smallest
    # normal number a quotient would lose its bits.
    tiny = np.finfo(np.float32).tiny
    scale = np.where(largest / most > tiny, largest / most, 1).astype(np.float32)
    q = np.clip(np.rint(value / scale), -most, most).astype(np.int8)
    return q, scale


def stored_table(proto: onnx.ModelProto, node: onnx.NodeProto) -> Array | None:
    """The large table [rows, columns] that a Gather takes rows of; None for any other node."""
    table = weight(proto, node.input[0]) if node.op_type == "Gather" else None
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    return None if table is None or axis != 0 or table.size <= LARGE else table


def embeddings_to_int8(proto: onnx.ModelProto) -> None:
    """Store tables that Gather reads as int8 with a scale a row; only the rows read are widened."""
    nodes = []
    for node in proto.graph.node:
        table = stored_table(proto, node)
        if table is None:
            nodes.append(node)
            continue
        name, ids, out = node.input[0], node.input[1], node.output[0]
        q, scale = quantize_symmetric(table, 0)
        q_name = store(proto, f"{name}_int8", q)
        scale_name = store(proto, f"{name}_scale", scale)  # [rows, 1]
        nodes += [
            helper.make_node("Gather", [q_name, ids], [f"{out}_int8"], f"{node.name}_int8", axis=0),
            helper.make_node(
                "Cast",
                [f"{out}_int8"],
                [f"{out}_cast"],
                f"{node.name}_cast",
                to=onnx.TensorProto.FLOAT,
            ),
            helper.make_node(
                "Gather", [scale_name, ids], [f"{out}_row_scale"], f"{node.name}_scale", axis=0
            ),
            helper.make_node(
                "Mul", [f"{out}_cast", f"{out}_row_scale"], [out], f"{node.name}_widen"
            ),
        ]
    replace_nodes(proto, nodes)


def store_rest_int8(proto: onnx.ModelProto, fp32_layers: Collection[str] = ()) -> None:
    """Store every other large matrix as int8 and widen it where it is read.

    What belongs to one of `fp32_layers` stays as it is.

    The scale runs along the output channel where the reader has one (second dimension of a MatMul,
    first of a convolution and of a Gemm that transposes), else along the last dimension.
    """
    left = {t.name for t in float_matrices(proto) if layer_name(t.name) not in fp32_layers}
    widened: dict[str, list[onnx.NodeProto]] = {}
    for node in proto.graph.node:
        for position, name in enumerate(node.input):
            if name not in left or name in widened:
                continue
            value = numpy_helper.to_array(initializers(proto)[name])
            transposed = node.op_type == "Gemm" and any(
                a.name == "transB" and a.i for a in node.attribute
            )
            first = position == 1 and (node.op_type.startswith("Conv") or transposed)
            axis = 0 if first else value.ndim - 1
            q, scale = quantize_symmetric(value, axis)
            inputs = [
                store(proto, f"{name}_int8", q),
                store(proto, f"{name}_scale", scale.reshape(-1)),
            ]
            widened[name] = [
                helper.make_node(
                    "DequantizeLinear", inputs, [f"{name}_widened"], f"{name}_widen", axis=axis
                )
            ]
    for node in proto.graph.node:
        for position, name in enumerate(node.input):
            if name in widened:
                node.input[position] = f"{name}_widened"
    added = [node for nodes in widened.values() for node in nodes]
    replace_nodes(proto, [*added, *proto.graph.node])
