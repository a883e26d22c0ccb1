"""Mixed precision in an ONNX graph: some layers quantized, the others as in the fp32 graph.

A quantizer replaces what computes a layer's output and keeps the names of the tensors around it, so
that each layer can be taken from either graph. A layer is one stored matrix, used once or, where
depths share it (ALBERT), several times.
"""

from collections.abc import Collection, Iterator

import numpy as np
import onnx
from onnx import numpy_helper

from edgebert.pipeline.runtimes.stored_tensor import LARGE, Layer, layer_name
from edgebert.pipeline.schemes import SchemeError
from edgebert.pipeline.stages.onnx_weights import (
    initializers,
    reachable,
    replace_nodes,
    stored_matmuls,
    weight,
)


def quantizable_nodes(proto: onnx.ModelProto) -> dict[str, list[onnx.NodeProto]]:
    """Layer -> the nodes that use it: MatMuls with a stored matrix, Gathers of a large table."""
    found: dict[str, list[onnx.NodeProto]] = {}
    for node in proto.graph.node:
        if node.op_type == "Gather":
            table = weight(proto, node.input[0])
            if table is not None and table.size > LARGE:
                found.setdefault(layer_name(node.input[0]), []).append(node)
    for node in stored_matmuls(proto):
        found.setdefault(layer_name(node.input[1]), []).append(node)
    return found


def onnx_layers(proto: onnx.ModelProto) -> tuple[Layer, ...]:
    """The layers of an fp32 graph whose head is a MatMul."""
    stored = initializers(proto)

    def matrix(node: onnx.NodeProto) -> onnx.TensorProto:
        return stored[node.input[0 if node.op_type == "Gather" else 1]]

    return tuple(
        Layer(name, int(np.prod(matrix(nodes[0]).dims)), len(nodes))
        for name, nodes in quantizable_nodes(proto).items()
    )


def mix(
    fp32: onnx.ModelProto, quantized: onnx.ModelProto, layers: Collection[str]
) -> onnx.ModelProto:
    """`fp32` with what computes `layers` taken from `quantized`.

    Args:
        fp32: the graph that was quantized.
        quantized: the same graph with every layer quantized.
        layers: names of the layers to take from it.

    Raises:
        SchemeError: quantizing changed more than what computes the layers.
    """
    opsets = [
        next(e.version for e in proto.opset_import if not e.domain) for proto in (fp32, quantized)
    ]
    if opsets[0] != opsets[1]:
        raise SchemeError(f"opset {opsets[1]} of the quantized layers is not {opsets[0]}")
    mixed = onnx.ModelProto()
    mixed.CopyFrom(fp32)
    replaced = _replacements(fp32, quantized, layers)
    nodes: list[onnx.NodeProto] = []
    placed: set[str] = set()  # MatMuls of one tensor share its quantization
    for node in fp32.graph.node:
        for part in replaced.get(node.output[0], [node]):
            if part.output[0] not in placed:
                nodes.append(part)
                placed.add(part.output[0])
    nodes = _bring_constants(mixed, quantized, nodes, set(replaced))
    replace_nodes(mixed, reachable(mixed, nodes))
    return mixed


def _replacements(
    fp32: onnx.ModelProto, quantized: onnx.ModelProto, layers: Collection[str]
) -> dict[str, list[onnx.NodeProto]]:
    """Tensor of both graphs -> the nodes of the quantized one that compute it for a layer."""
    producers = {name: node for node in quantized.graph.node for name in node.output}
    readers = {name: node for node in fp32.graph.node for name in node.input}
    known = {name for node in fp32.graph.node for name in node.output}
    replaced = {}
    for layer, nodes in quantizable_nodes(fp32).items():
        for node in nodes if layer in layers else ():
            output = node.output[0]
            if output not in producers:  # the bias became part of the integer product
                output = readers[output].output[0]
            if output not in producers:
                raise SchemeError(f"what computes {layer} cannot be told apart")
            replaced[output] = list(_computing(output, producers, known))
    return replaced


def _computing(
    output: str, producers: dict[str, onnx.NodeProto], known: Collection[str]
) -> Iterator[onnx.NodeProto]:
    """The nodes between the tensors that both graphs have and `output`, in their order."""
    node = producers[output]
    for name in node.input:
        if name in producers and name not in known:
            yield from _computing(name, producers, known)
    yield node


def _bring_constants(
    mixed: onnx.ModelProto,
    quantized: onnx.ModelProto,
    nodes: list[onnx.NodeProto],
    outputs: Collection[str],
) -> list[onnx.NodeProto]:
    """Give `mixed` the stored tensors of the quantized nodes; a corrected bias gets a new name."""
    ours, theirs = initializers(mixed), initializers(quantized)
    known = {name for node in mixed.graph.node for name in node.output} - set(outputs)
    copies = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copies.append(copy)
        if node.output[0] in known:  # a node of the fp32 graph
            continue
        for index, name in enumerate(node.input):
            if name not in theirs:
                continue
            tensor = onnx.TensorProto()
            tensor.CopyFrom(theirs[name])
            if name in ours and not _equal(ours[name], tensor):
                tensor.name = copy.input[index] = f"{name}_of_{node.output[0]}"
            if tensor.name not in ours:
                mixed.graph.initializer.append(tensor)
                ours[tensor.name] = tensor
    return copies


def _equal(first: onnx.TensorProto, second: onnx.TensorProto) -> bool:
    return np.array_equal(numpy_helper.to_array(first), numpy_helper.to_array(second))
