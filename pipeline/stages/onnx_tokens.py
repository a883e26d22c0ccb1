"""Dynamic int8 with a scale a token: x is quantized row by row as it runs.

onnxruntime's dynamic quantization takes one scale for a whole activation, so that the largest value
of any token, of padding and of the neighbors in a batch decides how finely each is rounded. Here
every row is divided by its own range, quantized in a fixed one, and the product multiplied by the
row's range: what a token gives depends on that token alone. Per-token scales are those of
ZeroQuant (Yao et al. 2022, arXiv:2206.01861), and of LiteRT's dynamic int8.

LiteRT also has a zero point a token. Here it would have to be corrected in every product, with two
more passes over its result; two things come as near for less. What GELU or ReLU gives is never
below -0.17, so that its zero point can be fixed and its values keep nearly all 8 bits. And what
LayerNorm gives is smoothed first: its few large channels are what one-sided rows come from.
"""

import numpy as np
import onnx
from onnx import helper

from edgebert.pipeline.stages.onnx_weights import (
    quantize_symmetric,
    replace_nodes,
    store,
    stored_matrix,
)

LEVELS = 255  # of uint8, above the lowest
MIDDLE = 128  # zero point of rows that reach as far below zero as above
LOW = 24  # of rows that hardly go below; it costs where their largest value is under 1.6
LOWEST = 0.1701  # what GELU goes below zero at the most, in any of its forms
HARDLY_NEGATIVE = ("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "Relu")


def quantize_tokens(proto: onnx.ModelProto, weight_bits: int = 8) -> None:
    """Compute MatMuls with a large stored matrix in integers, with a scale a row; in place.

    Args:
        proto: the fp32 graph.
        weight_bits: 8, or 7 in a range that x86 without VNNI adds without overflow.
    """
    producers = {name: node.op_type for node in proto.graph.node for name in node.output}
    nodes: list[onnx.NodeProto] = []
    quantized: set[str] = set()
    for node in proto.graph.node:
        matrix = stored_matrix(proto, node)
        if matrix is None:
            nodes.append(node)
            continue
        x, name, out = node.input[0], node.input[1], node.output[0]
        zero = LOW if producers.get(x) in HARDLY_NEGATIVE else MIDDLE
        step = store(proto, f"token_step_{zero}", np.array(1 / (LEVELS - zero), np.float32))
        zero_point = store(proto, f"token_zero_{zero}", np.array(zero, np.uint8))
        if x not in quantized:
            quantized.add(x)
            nodes += _quantize(proto, x, zero, step, zero_point)
        q, scale = quantize_symmetric(matrix, 1, weight_bits)
        inputs = [
            f"{x}_q",
            store(proto, f"{name}_int8", q),
            step,
            store(proto, f"{name}_scale", scale.reshape(-1)),
            zero_point,
        ]
        nodes += [
            helper.make_node(
                "MatMulIntegerToFloat", inputs, [f"{out}_unit"], node.name, domain="com.microsoft"
            ),
            helper.make_node("Mul", [f"{out}_unit", f"{x}_range"], [out], f"{node.name}_range"),
        ]
    replace_nodes(proto, nodes)


def _quantize(
    proto: onnx.ModelProto, x: str, zero: int, step: str, zero_point: str
) -> list[onnx.NodeProto]:
    """Nodes from x [..., K] to `x_q`, uint8, and what each row was divided by, `x_range` [..., 1].

    No value is clipped. A row of zeros has the range 0; whatever `x_q` is there (0 / 0), the
    product with 0 is 0.
    """
    last = store(proto, "token_axis", np.array([-1], np.int64))
    if zero == MIDDLE:
        nodes = [
            helper.make_node("Abs", [x], [f"{x}_size"], f"{x}_size"),
            helper.make_node("ReduceMax", [f"{x}_size", last], [f"{x}_range"], f"{x}_range"),
        ]
    else:
        room = np.array(LOWEST * (LEVELS - zero) / zero, np.float32)
        least = store(proto, f"token_least_{zero}", room)
        nodes = [
            helper.make_node("ReduceMax", [x, last], [f"{x}_largest"], f"{x}_largest"),
            helper.make_node("Max", [f"{x}_largest", least], [f"{x}_range"], f"{x}_range"),
        ]
    return [
        *nodes,
        # one division a row: dividing every value takes longer than the rest of this together
        helper.make_node("Reciprocal", [f"{x}_range"], [f"{x}_inverse"], f"{x}_inverse"),
        helper.make_node("Mul", [x, f"{x}_inverse"], [f"{x}_unit"], f"{x}_unit"),
        helper.make_node("QuantizeLinear", [f"{x}_unit", step, zero_point], [f"{x}_q"], f"{x}_q"),
    ]
