"""Layers that share their weights as one Loop: stored once in memory as well as in the file.

onnxruntime prepares every node by itself: an int8 ALBERT-base that is written out depth by depth
takes 2.3 times its file in memory, one with a Loop 2.0 times, and the latter loads in half the time
(onnxruntime 1.32). `roll` finds the repeated part of a graph and writes it once, as the body of a
Loop (https://onnx.ai/onnx/operators/onnx__Loop.html). What differs from depth to depth, such as
calibrated scales or corrected biases, becomes a table that the body reads at the number of its
pass, so that every scheme computes the same values as before. `unroll` is the inverse; quantizers
work on its result.
"""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgebert.pipeline.runtimes.onnx_size import without_weights
from edgebert.pipeline.runtimes.repetition import Node, Repetition, find_repetition


def roll(proto: onnx.ModelProto) -> int:
    """Write repeated layers that share their weights as Loops, in place.

    Equal initializers have to have one name (`onnx_graph.store_once`).

    Returns:
        the number of Loops; 0 where nothing repeats.
    """
    _set_nodes(proto, list(proto.graph.node))  # the fp16 conversion appends its casts
    count = 0
    while (found := _find(proto)) is not None:
        _replace(proto, found)
        count += 1
    return count


def _find(proto: onnx.ModelProto) -> Repetition | None:
    """A repeated layer; its weights have to be the same tensors, the rest only of one form."""
    constants = {
        tensor.name: tensor.name if _is_matrix(tensor) else (tensor.data_type, tuple(tensor.dims))
        for tensor in proto.graph.initializer
    } | {"": "left out"}
    weights = {tensor.name for tensor in proto.graph.initializer if _is_matrix(tensor)}
    nodes = []
    for node in proto.graph.node:
        attributes = sorted(a.SerializeToString(deterministic=True) for a in node.attribute)
        key = (node.domain, node.op_type, tuple(attributes))
        moves_data = node.op_type != "Shape"
        nodes.append(Node(key, tuple(node.input), tuple(node.output), moves_data))
    inputs = [value.name for value in proto.graph.input if value.name != "attention_mask"]
    outputs = [value.name for value in proto.graph.output]
    found = find_repetition(nodes, inputs, outputs, constants, weights)
    inside = {index for indices in found.passes for index in indices} if found else set()
    # What stays outside as well would be there under a name of the body.
    return found if found and found.replaced == inside else None


def _replace(proto: onnx.ModelProto, found: Repetition) -> None:
    """Put a Loop in the place of the passes."""
    passes = [[proto.graph.node[index] for index in indices] for indices in found.passes]
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    number, hidden, go_on = (f"{found.end}_{name}" for name in ("pass", "hidden", "go_on"))
    nodes: list[onnx.NodeProto] = []
    rows: dict[tuple[str, ...], str] = {}  # tensors of the passes -> the one of this pass
    for same in zip(*passes, strict=True):
        node = onnx.NodeProto()
        node.CopyFrom(same[0])
        for place, name in enumerate(node.input):
            names = tuple(other.input[place] for other in same)
            if name == found.start:
                node.input[place] = hidden
            elif name in stored and len(set(names)) > 1:
                if names not in rows:
                    table = f"{found.end}_table_{len(rows)}"
                    values = np.stack([numpy_helper.to_array(stored[name]) for name in names])
                    proto.graph.initializer.append(numpy_helper.from_array(values, table))
                    rows[names] = f"{table}_row"
                    nodes.append(
                        helper.make_node("Gather", [table, number], [rows[names]], table, axis=0)
                    )
                node.input[place] = rows[names]
        nodes.append(node)
    nodes.append(helper.make_node("Identity", [go_on], [f"{go_on}_next"], f"{go_on}_next"))
    elem_type = _type_of(proto, found.start)
    body = helper.make_graph(
        nodes,
        "layer",
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, []),
            helper.make_tensor_value_info(go_on, TensorProto.BOOL, []),
            helper.make_tensor_value_info(hidden, elem_type, None),
        ],
        [
            helper.make_tensor_value_info(f"{go_on}_next", TensorProto.BOOL, []),
            helper.make_tensor_value_info(found.first_end, elem_type, None),
        ],
    )
    count = f"passes_{len(passes)}"
    if count not in stored:
        proto.graph.initializer.append(numpy_helper.from_array(np.array(len(passes)), count))
    inputs = [count, "", found.start]
    loop = helper.make_node("Loop", inputs, [found.end], f"{found.end}_loop", body=body)
    others = [node for i, node in enumerate(proto.graph.node) if i not in found.replaced]
    _set_nodes(proto, [*others, loop])


def _is_matrix(tensor: onnx.TensorProto) -> bool:
    return len([size for size in tensor.dims if size > 1]) > 1


def _type_of(proto: onnx.ModelProto, name: str) -> int:
    """Element type of a tensor: of fp16 models it is known, contributed operators give fp32."""
    inferred = onnx.shape_inference.infer_shapes(without_weights(proto))
    types = {v.name: v.type.tensor_type.elem_type for v in inferred.graph.value_info}
    return int(types.get(name) or TensorProto.FLOAT)


def unroll(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The same computation without the Loops that `roll` wrote, in place; returns it."""
    nodes: list[onnx.NodeProto] = []
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type != "Loop":
            nodes.append(node)
            continue
        body = helper.get_node_attr_value(node, "body")
        number, _, hidden = (value.name for value in body.input)
        body_end, current = body.output[1].name, node.input[2]
        repeats = int(numpy_helper.to_array(stored[node.input[0]]))
        for index in range(repeats):
            last = node.output[0] if index == repeats - 1 else f"{body_end}_pass_{index}"
            renamed = {hidden: current, body_end: last}
            for inner in body.node[:-1]:  # the last one only tells the Loop to go on
                if number in inner.input:
                    row = numpy_helper.to_array(stored[inner.input[0]])[index]
                    name = f"{inner.input[0]}_{index}"
                    proto.graph.initializer.append(numpy_helper.from_array(np.array(row), name))
                    renamed[inner.output[0]] = name
                    continue
                copy = onnx.NodeProto()
                copy.CopyFrom(inner)
                copy.name = f"{inner.name}_pass_{index}"
                copy.input[:] = [renamed.get(name, name) for name in inner.input]
                for output in inner.output:
                    renamed.setdefault(output, f"{output}_pass_{index}")
                copy.output[:] = [renamed[name] for name in inner.output]
                nodes.append(copy)
            current = last
    _set_nodes(proto, nodes)
    return proto


def with_hidden_states(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that also gives the result of every pass.

    Every Loop, in order, gets an output `hidden_states_N` [passes, batch, seq, hidden]: what each
    pass through the shared layer leaves.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    loops = [node for node in copy.graph.node if node.op_type == "Loop"]
    for index, node in enumerate(loops):
        body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
        scanned, name = f"{body.output[1].name}_scanned", f"hidden_states_{index}"
        body.node.append(helper.make_node("Identity", [body.output[1].name], [scanned], scanned))
        elem_type = body.output[1].type.tensor_type.elem_type
        body.output.append(helper.make_tensor_value_info(scanned, elem_type, None))
        node.output.append(name)
        shape = [f"passes_{index}", "batch", "seq", "hidden"]
        copy.graph.output.append(helper.make_tensor_value_info(name, elem_type, shape))
    return copy


def _set_nodes(proto: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Set the nodes, each after what it reads, and drop the initializers that nothing reads."""
    made = {name for node in nodes for name in node.output}
    ready: set[str] = set()
    ordered: list[onnx.NodeProto] = []
    waiting = list(nodes)
    while waiting:
        later = []
        for node in waiting:
            if reads(node) & made <= ready:
                ordered.append(node)
                ready |= set(node.output)
            else:
                later.append(node)
        waiting = later
    used = {name for node in nodes for name in reads(node)}
    used |= {output.name for output in proto.graph.output}
    kept = [tensor for tensor in proto.graph.initializer if tensor.name in used]
    del proto.graph.node[:], proto.graph.initializer[:], proto.graph.value_info[:]
    proto.graph.node.extend(ordered)
    proto.graph.initializer.extend(kept)


def reads(node: onnx.NodeProto) -> set[str]:
    """Names that a node reads, those that the body of a Loop takes from outside among them."""
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            own = {value.name for value in attribute.g.input}
            own |= {name for inner in attribute.g.node for name in inner.output}
            names |= {name for inner in attribute.g.node for name in reads(inner)} - own
    return names
