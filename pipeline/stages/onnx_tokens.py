"""Dynamic int8 with a scale a token: x is quantized row by row as it runs.

onnxruntime's dynamic quantization takes one scale for a whole activation, so that the largest value
of any token, of padding and of the neighbors in a batch decides how finely each is rounded. Here
every row is divided by its largest value first, quantized in the fixed range of -1 to 1, and the
result multiplied by that value: what a token gives depends on that token alone. Per-token scales
are those of ZeroQuant (Yao et al. 2022, arXiv:2206.01861), and of LiteRT's dynamic int8.
"""

import numpy as np
import onnx
from onnx import helper

from edgebert.pipeline.runtimes.stored_tensor import LARGE
from edgebert.pipeline.stages.onnx_weights import quantize_symmetric, replace_nodes, store, weight

SMALLEST = 1e-6  # divides a row of zeros


def quantize_tokens(proto: onnx.ModelProto) -> None:
    """Compute MatMuls with a large stored matrix in integers, with a scale a row; in place."""
    step = store(proto, "token_step", np.array(1 / 127, np.float32))
    middle = store(proto, "token_zero", np.array(128, np.uint8))
    smallest = store(proto, "token_smallest", np.array(SMALLEST, np.float32))
    last = store(proto, "token_axis", np.array([-1], np.int64))
    nodes: list[onnx.NodeProto] = []
    quantized: set[str] = set()
    for node in proto.graph.node:
        matrix = weight(proto, node.input[1]) if node.op_type == "MatMul" else None
        if matrix is None or matrix.size <= LARGE:
            nodes.append(node)
            continue
        x, name, out = node.input[0], node.input[1], node.output[0]
        if x not in quantized:
            quantized.add(x)
            nodes += [
                helper.make_node("Abs", [x], [f"{x}_abs"], f"{x}_abs"),
                helper.make_node(
                    "ReduceMax", [f"{x}_abs", last], [f"{x}_largest"], f"{x}_largest", keepdims=1
                ),
                helper.make_node("Max", [f"{x}_largest", smallest], [f"{x}_range"], f"{x}_range"),
                helper.make_node("Div", [x, f"{x}_range"], [f"{x}_unit"], f"{x}_unit"),
                helper.make_node(
                    "QuantizeLinear", [f"{x}_unit", step, middle], [f"{x}_q"], f"{x}_q"
                ),
            ]
        q, scale = quantize_symmetric(matrix, 1)
        inputs = [
            f"{x}_q",
            store(proto, f"{name}_int8", q),
            step,
            store(proto, f"{name}_scale", scale.reshape(-1)),
            middle,
        ]
        nodes += [
            helper.make_node(
                "MatMulIntegerToFloat", inputs, [f"{out}_unit"], node.name, domain="com.microsoft"
            ),
            helper.make_node("Mul", [f"{out}_unit", f"{x}_range"], [out], f"{node.name}_range"),
        ]
    replace_nodes(proto, nodes)
