"""Layers that share their weights as one Loop: stored once in memory as well as in the file.

onnxruntime packs a weight anew for every node that reads it, so an ALBERT that is written out depth
by depth is one copy on disk and twelve in memory. `roll` finds the repeated part of a graph and
writes it once, as the body of a Loop (https://onnx.ai/onnx/operators/onnx__Loop.html). What differs
from depth to depth, such as calibrated scales or corrected biases, becomes a table that the body
reads at the number of its pass, so that every scheme computes the same values as before. `unroll`
is the inverse; quantizers work on its result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Segment:
    """The nodes between two tensors that all data passes through.

    Attributes:
        nodes: in the order of a walk from the end backwards, which does not depend on names.
        key: what two segments have in common when they compute alike with the same weights.
    """

    nodes: tuple[onnx.NodeProto, ...]
    key: _Key


@dataclass(frozen=True)
class _Run:
    """Repeated segments: `repeats` times `period` of them from the cut numbered `start` on."""

    start: int
    period: int
    repeats: int


class _Graph:
    """An ONNX graph with its cuts: the tensors through which everything that is computed passes."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        self.stored = {tensor.name: tensor for tensor in proto.graph.initializer}
        self.producers = {name: node for node in proto.graph.node for name in node.output}
        self.cuts = self._cuts()
        self.segments = [self._segment(start, end) for start, end in pairwise(self.cuts)]

    def _cuts(self) -> list[str]:
        """Tensors that hold, alone, all that the ids have led to so far.

        A shape is no data: it says nothing of the values that it was taken from.
        """
        data = {i.name for i in self.proto.graph.input if i.name != "attention_mask"}
        last: dict[str, int] = {}
        for index, node in enumerate(self.proto.graph.node):
            if node.op_type != "Shape" and data & set(node.input):
                data |= set(node.output)
                last |= dict.fromkeys(data & set(node.input), index)
        last |= {output.name: len(self.proto.graph.node) for output in self.proto.graph.output}
        cuts: list[str] = []
        alive = data & {i.name for i in self.proto.graph.input} & set(last)
        for index, node in enumerate(self.proto.graph.node):
            alive = {name for name in alive if last[name] > index}
            alive |= {name for name in node.output if name in data and name in last}
            if len(alive) == 1 and alive & set(node.output):
                cuts += alive
        return cuts

    def _segment(self, start: str, end: str) -> _Segment:
        """What computes `end` from `start`."""
        depends: dict[str, bool] = {start: True}

        def reads_start(name: str) -> bool:
            if name not in depends:
                node = self.producers.get(name)
                depends[name] = node is not None and any(reads_start(i) for i in node.input)
            return depends[name]

        places: dict[str, tuple[int, int]] = {}  # tensor -> place of its node, and of it there
        nodes: list[onnx.NodeProto] = []
        key: list[object] = []

        def walk(name: str) -> None:
            node = self.producers[name]
            for source in node.input:
                if source != start and source not in places and reads_start(source):
                    walk(source)
            places.update({output: (len(nodes), i) for i, output in enumerate(node.output)})
            nodes.append(node)
            attributes = sorted(a.SerializeToString(deterministic=True) for a in node.attribute)
            key.append((node.domain, node.op_type, tuple(attributes), len(node.output)))
            key.extend(self._source(source, start, places) for source in node.input)

        walk(end)
        return _Segment(tuple(nodes), tuple(key))

    def _source(self, name: str, start: str, places: dict[str, tuple[int, int]]) -> object:
        """An input of a node, by what it is and not by its name where that may differ."""
        if name == start:
            return "start"
        if name in places:
            return places[name]
        tensor = self.stored.get(name)
        if tensor is None or _is_matrix(tensor):
            return name
        return tensor.data_type, tuple(tensor.dims)

    def best_run(self) -> _Run | None:
        """The repetition that saves most nodes, among those that repeat a weight."""
        keys = [segment.key for segment in self.segments]
        weights = {name for name, tensor in self.stored.items() if _is_matrix(tensor)}
        for node in self.proto.graph.node:  # a weight may be widened before it is read
            if weights & set(node.input) and set(node.input) <= weights | set(self.stored):
                weights |= set(node.output)
        best: tuple[int, _Run] | None = None
        for period in range(1, len(keys) // 2 + 1):
            equal = 0  # segments in a row that are like the one a period further
            for start in reversed(range(len(keys) - period)):
                equal = equal + 1 if keys[start] == keys[start + period] else 0
                repeats = equal // period + 1
                nodes = [n for s in self.segments[start : start + period] for n in s.nodes]
                saved = (repeats - 1) * len(nodes)
                if repeats > 1 and weights & {name for node in nodes for name in node.input}:
                    run = _Run(start, period, repeats)
                    # Ties go to the shorter period and, of one period, to the earlier start.
                    if best is None or (saved, -period, -start) > (
                        best[0],
                        -best[1].period,
                        -best[1].start,
                    ):
                        best = saved, run
        return best[1] if best else None

    def passes(self, run: _Run) -> list[list[onnx.NodeProto]]:
        """The nodes of every repetition, in one order."""
        starts = [run.start + run.period * index for index in range(run.repeats)]
        return [
            [node for segment in self.segments[s : s + run.period] for node in segment.nodes]
            for s in starts
        ]


def roll(proto: onnx.ModelProto) -> int:
    """Write repeated layers that share their weights as Loops, in place.

    Equal initializers have to have one name (`onnx_graph.store_once`).

    Returns:
        the number of Loops; 0 where nothing repeats.
    """
    _set_nodes(proto, list(proto.graph.node))  # the fp16 conversion appends its casts
    _merge_constants(proto)
    count = 0
    while True:
        graph = _Graph(proto)
        run = graph.best_run()
        if run is None or not _roll(graph, run):
            return count
        count += 1


def _roll(graph: _Graph, run: _Run) -> bool:
    """Replace one run by a Loop; False where something else reads the inside of it."""
    proto, passes = graph.proto, graph.passes(run)
    start, end = graph.cuts[run.start], graph.cuts[run.start + run.period * run.repeats]
    replaced = {name for nodes in passes for node in nodes for name in node.output}
    others = [node for node in proto.graph.node if node.output[0] not in replaced]
    outside = {name for node in others for name in node.input}
    outside |= {output.name for output in proto.graph.output}
    if outside & replaced != {end}:
        return False
    body_end = graph.cuts[run.start + run.period]
    number, hidden, go_on = (f"{end}_{name}" for name in ("pass", "hidden", "go_on"))
    nodes: list[onnx.NodeProto] = []
    tables: dict[tuple[str, ...], str] = {}
    for same in zip(*passes, strict=True):
        node = onnx.NodeProto()
        node.CopyFrom(same[0])
        for place, name in enumerate(node.input):
            names = tuple(other.input[place] for other in same)
            if name == start:
                node.input[place] = hidden
            elif name in graph.stored and len(set(names)) > 1:
                if names not in tables:
                    table = _table(graph, names, f"{end}_table_{len(tables)}")
                    tables[names] = f"{table}_row"
                    nodes.append(
                        helper.make_node("Gather", [table, number], [f"{table}_row"], table, axis=0)
                    )
                node.input[place] = tables[names]
        nodes.append(node)
    nodes.append(helper.make_node("Identity", [go_on], [f"{go_on}_next"], f"{go_on}_next"))
    # A value of fp16 models; contributed operators, which have no type inference, give fp32.
    elem_type = _type_of(proto, start)
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
            helper.make_tensor_value_info(body_end, elem_type, None),
        ],
    )
    count = f"passes_{run.repeats}"
    if count not in graph.stored:
        proto.graph.initializer.append(numpy_helper.from_array(np.array(run.repeats), count))
    loop = helper.make_node("Loop", [count, "", start], [end], f"{end}_loop", body=body)
    _set_nodes(proto, [*others, loop])
    return True


def _merge_constants(proto: onnx.ModelProto) -> None:
    """Let nodes that compute the same from initializers alone (a widened weight) be one node."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    first: dict[_Key, onnx.NodeProto] = {}
    renamed: dict[str, str] = {}
    for node in proto.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        if set(node.input) <= constants and len(node.output) == 1:
            constants |= set(node.output)
            attributes = tuple(a.SerializeToString(deterministic=True) for a in node.attribute)
            key = (node.domain, node.op_type, tuple(node.input), attributes)
            renamed[node.output[0]] = first.setdefault(key, node).output[0]
    kept = [n for n in proto.graph.node if renamed.get(n.output[0], n.output[0]) == n.output[0]]
    _set_nodes(proto, kept)


def _is_matrix(tensor: onnx.TensorProto) -> bool:
    return len([size for size in tensor.dims if size > 1]) > 1


def _table(graph: _Graph, names: Sequence[str], name: str) -> str:
    """Store what differs from pass to pass as one tensor [passes, ...]."""
    values = np.stack([numpy_helper.to_array(graph.stored[name]) for name in names])
    graph.proto.graph.initializer.append(numpy_helper.from_array(values, name))
    return name


def _type_of(proto: onnx.ModelProto, name: str) -> int:
    inferred = onnx.shape_inference.infer_shapes(proto)
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
