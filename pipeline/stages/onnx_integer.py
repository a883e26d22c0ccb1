"""Turn quantize-dequantize pairs into integer matrix products.

onnxruntime fuses a MatMul between DequantizeLinear nodes to an integer product only where its
patterns match. Where several MatMuls read one quantized tensor (query, key and value) they do not,
and the weights are dequantized at every run. Written out (MatMulIntegerToFloat, com.microsoft, from
onnxruntime 1.2 on), the product is an integer one whatever the optimizer sees.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from edgebert.pipeline.stages.onnx_weights import (
    initializers,
    reachable,
    replace_nodes,
    store,
)

# Operators that move values and change none: quantizing before them is quantizing after them.
MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Identity")


@dataclass(frozen=True)
class _Graph:
    proto: onnx.ModelProto
    producers: dict[str, onnx.NodeProto]
    stored: dict[str, onnx.TensorProto]

    def quantized_activation(self, name: str) -> onnx.NodeProto | None:
        """The QuantizeLinear behind `name`, where it ends a pair with one stored scale."""
        widen = self.producers.get(name)
        if widen is None or widen.op_type != "DequantizeLinear":
            return None
        narrow = self.producers.get(widen.input[0])
        if narrow is None or narrow.op_type != "QuantizeLinear" or len(narrow.input) < 3:
            return None
        scale = self.stored.get(narrow.input[1])
        return narrow if scale is not None and int(np.prod(scale.dims)) == 1 else None

    def unquantized(self, name: str) -> str:
        """What a quantize-dequantize pair that ends in `name` was given; else `name` itself."""
        source = self.quantized_activation(name)
        return name if source is None else source.input[0]

    def quantizer_of(self, name: str) -> onnx.NodeProto | None:
        """The QuantizeLinear that decides the values of `name`, looking through moves of values."""
        while (node := self.producers.get(name)) is not None and node.op_type in MOVES:
            name = node.input[0]
        return self.quantized_activation(name)

    def quantized_weight(self, name: str) -> onnx.NodeProto | None:
        """The DequantizeLinear of a stored int8 matrix with scales along its columns."""
        widen = self.producers.get(name)
        if widen is None or widen.op_type != "DequantizeLinear":
            return None
        q = self.stored.get(widen.input[0])
        if q is None or q.data_type != onnx.TensorProto.INT8 or len(q.dims) != 2:
            return None
        scale = self.stored[widen.input[1]]
        columns = int(np.prod(scale.dims)) == 1 or list(scale.dims) == [q.dims[1]]
        zero = self.stored[widen.input[2]] if len(widen.input) > 2 else None
        return (
            widen if columns and (zero is None or not numpy_helper.to_array(zero).any()) else None
        )

    def bias_of(
        self, node: onnx.NodeProto, products: dict[str, onnx.NodeProto]
    ) -> tuple[str, str] | None:
        """(product, stored bias) where `node` adds one to the other."""
        if node.op_type != "Add":
            return None
        for product, bias in (node.input, reversed(node.input)):
            if product in products and bias in self.stored and len(self.stored[bias].dims) == 1:
                columns = self.stored[products[product].input[1]].dims[1]
                return (product, bias) if self.stored[bias].dims[0] == columns else None
        return None


def _integer_product(
    graph: _Graph,
    node: onnx.NodeProto,
    narrow: onnx.NodeProto,
    wide: onnx.NodeProto,
    nodes: list[onnx.NodeProto],
) -> onnx.NodeProto:
    """Append a MatMul in integers to `nodes`; MatMuls of one tensor share its quantization."""
    x = graph.unquantized(node.input[0])
    scale = numpy_helper.to_array(graph.stored[narrow.input[1]]).reshape(())
    zero = numpy_helper.to_array(graph.stored[narrow.input[2]]).reshape(())
    zero = (zero.astype(np.int16) + (128 if zero.dtype == np.int8 else 0)).astype(np.uint8)
    name = f"{x}_{scale.tobytes().hex()}_{int(zero)}"
    scale_name = store(graph.proto, f"{name}_scale", scale)
    zero_name = store(graph.proto, f"{name}_zero", zero)
    if not any(f"{name}_q" in other.output for other in nodes):
        inputs = [x, scale_name, zero_name]
        nodes.append(helper.make_node("QuantizeLinear", inputs, [f"{name}_q"], f"{name}_q"))
    columns = numpy_helper.to_array(graph.stored[wide.input[1]]).reshape(-1)
    column_scale = store(graph.proto, f"{wide.input[1]}_columns", columns)
    inputs = [f"{name}_q", wide.input[0], scale_name, column_scale, zero_name, ""]
    nodes.append(
        helper.make_node(
            "MatMulIntegerToFloat", inputs, [node.output[0]], node.name, domain="com.microsoft"
        )
    )
    return nodes[-1]


def lower_to_integer(proto: onnx.ModelProto) -> None:
    """Compute MatMuls between quantized activations and quantized weights in integers; in place.

    Activations become uint8 (shifted by 128 where they were int8, which changes no value): U8S8 is
    the form that x86 has instructions for, and ARM has kernels for both. Quantize-dequantize pairs
    that no integer product reads are taken out: they cost time and precision and save nothing.
    """
    graph = _Graph(proto, {o: n for n in proto.graph.node for o in n.output}, initializers(proto))
    readers = Counter(name for node in proto.graph.node for name in node.input)
    nodes: list[onnx.NodeProto] = []
    fused: dict[str, onnx.NodeProto] = {}
    for node in proto.graph.node:
        narrow = graph.quantizer_of(node.input[0]) if node.op_type == "MatMul" else None
        wide = graph.quantized_weight(node.input[1]) if node.op_type == "MatMul" else None
        bias = graph.bias_of(node, fused)
        if bias is not None:
            product = fused.pop(bias[0])
            product.input.append(bias[1])
            product.output[0] = node.output[0]
        elif narrow is None or wide is None:
            nodes.append(node)
        else:
            product = _integer_product(graph, node, narrow, wide, nodes)
            if readers[node.output[0]] == 1:
                fused[node.output[0]] = product
    for node in nodes:
        for index, name in enumerate(node.input):
            node.input[index] = graph.unquantized(name)
    replace_nodes(proto, reachable(proto, nodes))
