"""Static int8 with the ranges that quantization-aware training has learned."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from edgebert.pipeline.runtimes.stored_tensor import layer_name
from edgebert.pipeline.schemes import SchemeError
from edgebert.pipeline.stages.fake_quantizers import Ranges
from edgebert.pipeline.stages.onnx_integer import lower_to_integer
from edgebert.pipeline.stages.onnx_weights import replace_nodes, store, stored_matmuls, weight


def quantize_trained(proto: onnx.ModelProto, ranges: Mapping[str, Ranges]) -> None:
    """Compute the MatMuls of trained layers in integers; in place.

    Args:
        proto: the fp32 graph, exported from the trained checkpoint.
        ranges: what was learned, by layer.

    Raises:
        SchemeError: the graph runs a layer more or less often than the training did.
    """
    products = {node.output[0] for node in stored_matmuls(proto)}
    uses = Counter[str]()
    nodes: list[onnx.NodeProto] = []
    made: set[str] = set()

    def pair(kind: str, inputs: list[str], name: str, **settings: int) -> str:
        if name not in made:
            made.add(name)
            nodes.append(helper.make_node(kind, inputs, [name], name, **settings))
        return name

    for node in proto.graph.node:
        layer = layer_name(node.input[1]) if node.output[0] in products else ""
        if layer in ranges:
            one, use = ranges[layer], uses[layer]
            uses[layer] += 1
            if use >= len(one.input_scale):
                raise SchemeError(f"{layer} was trained for {len(one.input_scale)} uses")
            x, name = node.input[0], node.input[1]
            scale, zero = one.input_scale[use].numpy(), one.input_zero_point[use].numpy()
            key = f"{x}_{scale.tobytes().hex()}_{int(zero)}"  # query, key and value read the same
            given = [
                store(proto, f"{key}_scale", np.asarray(scale, np.float32)),
                store(proto, f"{key}_zero", np.asarray(zero, np.uint8)),
            ]
            narrow = pair("QuantizeLinear", [x, *given], f"{key}_narrow")
            node.input[0] = pair("DequantizeLinear", [narrow, *given], f"{key}_wide")
            matrix = weight(proto, name)  # [in, out]
            assert matrix is not None
            columns = one.weight_scale.numpy().astype(np.float32)
            steps = np.clip(np.rint(matrix / columns), -one.weight_steps, one.weight_steps)
            stored = [
                store(proto, f"{name}_int8", steps.astype(np.int8)),
                store(proto, f"{name}_scale", columns),
            ]
            node.input[1] = pair("DequantizeLinear", stored, f"{name}_wide", axis=1)
        nodes.append(node)
    wrong = [layer for layer, one in ranges.items() if uses[layer] != len(one.input_scale)]
    if wrong:
        raise SchemeError(f"the graph runs {wrong[0]} {uses[wrong[0]]} times, the training not")
    replace_nodes(proto, nodes)
    lower_to_integer(proto)
