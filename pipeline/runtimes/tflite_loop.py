"""Layers that share their weights as one WHILE in a parsed .tflite file.

XNNPACK packs a weight for every operator that reads it: an ALBERT that is written out is in memory
once for each depth. Where the passes differ in more than their input (static activation scales are
fixed in the file), the graph stays written out.
"""

import copy
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgebert.pipeline.runtimes.repetition import Node, Repetition, find_repetition
from edgebert.pipeline.runtimes.tflite_blocks import details, read_scales, with_scales
from edgebert.pipeline.runtimes.tflite_file import shape_of, text_of

SAME_SCALE = 1e-4  # relative: a shared matrix is quantized once a depth, and its scales are rounded
MAX_DEPRECATED_CODE = 127  # of the old 8-bit field; a runtime reads the larger of the two


def roll(model: Any) -> int:
    """Write repeated layers that share their weights as WHILEs, in place.

    Equal buffers have to be one (`tflite_rewrite.tidy`).

    Returns:
        the number of WHILEs over all signatures; 0 where nothing repeats.
    """
    count = 0
    for index in sorted({signature.subgraphIndex for signature in model.signatureDefs}):
        while (found := _find(model, index)) is not None:
            _replace(model, index, found)
            count += 1
    return count


def _find(model: Any, index: int) -> Repetition | None:
    graph = model.subgraphs[index]
    constants: dict[str, Hashable] = {"-1": "left out"}
    scales: dict[int, list[Any]] = {}  # buffer -> the different scales that its tensors have
    weights = set()
    for number, tensor in enumerate(graph.tensors):
        if model.buffers[tensor.buffer].data is None:
            continue
        scale = read_scales(model, graph, tensor)
        scale = np.array([]) if scale is None else scale
        known = scales.setdefault(tensor.buffer, [])
        alike = (i for i, other in enumerate(known) if same_scale(other, scale))
        place = next(alike, len(known))
        known[place:] = known[place:] or [scale]
        constants[str(number)] = (tensor.buffer, place, tensor.type, shape_of(tensor))
        if len([size for size in shape_of(tensor) if size > 1]) > 1:
            weights.add(str(number))
    nodes = [Node(_key(graph, op), _names(op.inputs), _names(op.outputs)) for op in graph.operators]
    signature = next(s for s in model.signatureDefs if s.subgraphIndex == index)
    inputs = [
        str(entry.tensorIndex)
        for entry in signature.inputs
        if text_of(entry.name) != "attention_mask"
    ]
    return find_repetition(nodes, inputs, _names(graph.outputs), constants, weights)


def same_scale(first: Any, second: Any) -> bool:
    """Whether scales differ by rounding at most."""
    return len(first) == len(second) and bool(np.allclose(first, second, rtol=SAME_SCALE, atol=0))


def _names(indices: Sequence[int]) -> tuple[str, ...]:
    return tuple(str(int(index)) for index in indices)


def _key(graph: Any, operator: Any) -> Hashable:
    """What decides the result of an operator: its settings, and the form of what it gives."""
    options = operator.builtinOptions
    values = {} if options is None else vars(options)
    settings = tuple(sorted((name, repr(value)) for name, value in values.items()))
    return operator.opcodeIndex, settings, tuple(_form(graph.tensors[i]) for i in operator.outputs)


def _form(tensor: Any) -> Hashable:
    quantization = tensor.quantization
    if quantization is None or quantization.scale is None:
        return tensor.type, shape_of(tensor)
    return tensor.type, shape_of(tensor), repr(quantization.scale), repr(quantization.zeroPoint)


class _Body:
    """A subgraph under construction, with copies of the tensors of another one."""

    def __init__(self, name: str, source: Any) -> None:
        self.graph = schema.SubGraphT()
        self.graph.name = name.encode()
        self.graph.tensors, self.graph.operators = [], []
        self.source = source
        self.places: dict[int, int] = {-1: -1}

    def take(self, index: int) -> int:
        """The place here of a tensor of the source."""
        if index not in self.places:
            tensor = copy.copy(self.source.tensors[index])
            if (blocks := details(tensor)) is not None:
                tensor = with_scales(tensor, self.take(blocks.scales))
            self.places[index] = self.add(tensor)
        return self.places[index]

    def add(self, tensor: Any) -> int:
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1


def _replace(model: Any, index: int, found: Repetition) -> None:
    """Put a WHILE with a body and a condition of its own in the place of the passes."""
    graph = model.subgraphs[index]
    operators = list(graph.operators)
    start, first_end, end = int(found.start), int(found.first_end), int(found.end)
    name = f"{text_of(graph.name)}_layer_{len(model.subgraphs)}"
    body, condition = _Body(name, graph), _Body(f"{name}_condition", graph)
    first = [operators[i] for i in found.passes[0]]
    made = {output for op in first for output in op.outputs}
    outer = {i for op in first for i in op.inputs if i >= 0} - made - {start}
    captured = sorted(i for i in outer if model.buffers[graph.tensors[i].buffer].data is None)

    number = body.add(_counter())
    carried = [number, *(body.take(i) for i in (start, *captured))]
    for operator in (operators[i] for i in sorted(found.passes[0])):
        inner = copy.copy(operator)
        inner.inputs = [body.take(i) for i in operator.inputs]
        inner.outputs = [body.take(i) for i in operator.outputs]
        body.graph.operators.append(inner)
    following = body.add(_counter())
    one = body.add(_counter(store(model, 1)))
    body.graph.operators.append(make_operator(model, "ADD", [number, one], [following]))
    body.graph.inputs = carried
    body.graph.outputs = [following, body.take(first_end), *carried[2:]]

    condition.graph.inputs = [
        condition.add(_counter()),
        *(condition.take(i) for i in (start, *captured)),
    ]
    passes = condition.add(_counter(store(model, len(found.passes))))
    goes_on = _counter()
    goes_on.type = schema.TensorType.BOOL
    condition.graph.outputs = [condition.add(goes_on)]
    less = make_operator(
        model, "LESS", [condition.graph.inputs[0], passes], condition.graph.outputs
    )
    condition.graph.operators.append(less)

    outside = _Body("", graph)
    outside.graph.tensors = list(graph.tensors)
    zero, last = outside.add(_counter(store(model, 0))), outside.add(_counter())
    left = [outside.add(copy.copy(graph.tensors[i])) for i in captured]
    loop = make_operator(model, "WHILE", [zero, start, *captured], [last, end, *left])
    loop.builtinOptions.condSubgraphIndex = len(model.subgraphs)
    loop.builtinOptions.bodySubgraphIndex = len(model.subgraphs) + 1
    model.subgraphs += [condition.graph, body.graph]
    position = max(found.replaced)
    graph.tensors = outside.graph.tensors
    graph.operators = [
        *(op for i, op in enumerate(operators) if i < position and i not in found.replaced),
        loop,
        *operators[position + 1 :],
    ]
    _drop_unused_tensors(model, index)


def _counter(buffer: int = 0) -> Any:
    """An int32 scalar; buffer 0 is the empty one, of what is computed."""
    tensor = schema.TensorT()
    tensor.name, tensor.type, tensor.buffer = b"pass", schema.TensorType.INT32, buffer
    tensor.shape = np.array([], np.int32)
    return tensor


def store(model: Any, value: int | Sequence[int]) -> int:
    """Add a buffer with int32 numbers; its index."""
    buffer = schema.BufferT()
    buffer.data = np.array(value, np.int32).reshape(-1).view(np.uint8)
    model.buffers.append(buffer)
    return len(model.buffers) - 1


def make_operator(model: Any, name: str, inputs: list[int], outputs: list[int]) -> Any:
    """An operator with default options, and its code where the model has none yet."""
    builtin = getattr(schema.BuiltinOperator, name)
    codes = model.operatorCodes
    place = next((i for i, code in enumerate(codes) if code.builtinCode == builtin), len(codes))
    if place == len(codes):
        code = schema.OperatorCodeT()
        code.builtinCode, code.deprecatedBuiltinCode = builtin, min(builtin, MAX_DEPRECATED_CODE)
        code.version = 1
        codes.append(code)
    operator = schema.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = place, inputs, outputs
    options = f"{name.title().replace('_', '')}Options"
    operator.builtinOptionsType = getattr(schema.BuiltinOptions, options)
    operator.builtinOptions = getattr(schema, f"{options}T")()
    return operator


def _drop_unused_tensors(model: Any, index: int) -> None:
    graph = model.subgraphs[index]
    used = {i for op in graph.operators for i in [*op.inputs, *op.outputs]} - {-1}
    blocks = {i: details(graph.tensors[i]) for i in used}
    used |= {found.scales for found in blocks.values() if found is not None}
    kept = sorted(used | {*graph.inputs, *graph.outputs})
    place = {-1: -1} | {old: new for new, old in enumerate(kept)}
    for i, found in blocks.items():
        if found is not None:
            with_scales(graph.tensors[i], place[found.scales])
    graph.tensors = [graph.tensors[i] for i in kept]
    for holder in (graph, *graph.operators):
        holder.inputs = [place[i] for i in holder.inputs]
        holder.outputs = [place[i] for i in holder.outputs]
    for signature in model.signatureDefs:
        if signature.subgraphIndex == index:
            for entry in (*signature.inputs, *signature.outputs):
                entry.tensorIndex = place[entry.tensorIndex]
