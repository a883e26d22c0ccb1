"""Signatures of several token lengths as one graph for all of them, in a parsed .tflite file.

XNNPACK packs the weights of every signature when the first one runs: a file with three lengths is
in memory three times. Of one graph there is one packed copy, which stays when its inputs are
resized. The signatures keep their names and all lead to that graph, the file's first; whoever runs
one resizes its inputs, as LiteRT's signature runners do by themselves for arrays.

Graphs that differ in more than the length (static activation scales, tables of relative positions
that are no part of each other) stay as they are.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgebert.pipeline.runtimes.tflite_file import operator_name, shape_of, text_of
from edgebert.pipeline.runtimes.tflite_loop import make_operator, same_scale, store

ANY = -1  # a dimension that the runtime works out


class _Differ(Exception):
    """The graphs differ in more than the length."""


def merge_lengths(model: Any) -> bool:
    """Make one graph of those of all signatures (`s` and the length), in place.

    Equal buffers have to be one (`tflite_rewrite.tidy`).

    Returns:
        whether it could: False leaves the model as it was.
    """
    signatures = sorted(model.signatureDefs, key=_length)
    graphs = [model.subgraphs[signature.subgraphIndex] for signature in signatures]
    if len(graphs) < 2 or len(graphs) != len(model.subgraphs):
        return False
    differences = _Differences(model, [_length(signature) for signature in signatures], graphs)
    try:
        differences.find()
    except _Differ:
        return False
    graph = graphs[0]
    for index, shape in differences.shapes.items():
        graph.tensors[index].buffer = store(model, shape)
    for operator in graph.operators:
        if hasattr(operator.builtinOptions, "newShape"):  # a copy of a RESHAPE's second input
            operator.builtinOptions.newShape = differences.shapes.get(
                int(operator.inputs[-1]), operator.builtinOptions.newShape
            )
    for index in [*graph.inputs, *graph.outputs]:
        sizes = (shape_of(tensor) for tensor in differences.counterparts(index))
        signature_shape = [s[0] if len(set(s)) == 1 else ANY for s in zip(*sizes, strict=True)]
        graph.tensors[index].shapeSignature = np.array(signature_shape, np.int32)
    if differences.tables:
        _look_up(model, graph, differences.tables)
    for signature in signatures:
        signature.inputs = copy.deepcopy(signatures[0].inputs)
        signature.outputs = copy.deepcopy(signatures[0].outputs)
        signature.subgraphIndex = 0
    model.subgraphs = [graph]
    return True


def _length(signature: Any) -> int:
    return int(text_of(signature.signatureKey)[1:])


class _Differences:
    """Where graphs differ from the first, of the shortest length.

    Attributes:
        shapes: shape operand of a RESHAPE -> the shape with `ANY` for what depends on the length.
        tables: constant of the length's size -> that of the longest graph, whose start it is.
    """

    def __init__(self, model: Any, lengths: Sequence[int], graphs: Sequence[Any]) -> None:
        self.model, self.lengths, self.graphs = model, lengths, graphs
        self.shapes: dict[int, Any] = {}
        self.tables: dict[int, Any] = {}
        self._indices: dict[int, tuple[int, ...]] = {}  # tensor -> it in every graph

    def find(self) -> None:
        """Compare operator by operator.

        Raises:
            _Differ: there is no one graph for all lengths.
        """
        _require_same([len(graph.operators) for graph in self.graphs])
        for operators in zip(*(graph.operators for graph in self.graphs), strict=True):
            _require_same([operator.opcodeIndex for operator in operators])
            _require_same([_options(operator) for operator in operators])
            name = operator_name(self.model.operatorCodes[operators[0].opcodeIndex])
            for place, indices in enumerate(_columns([o.inputs for o in operators])):
                if name == "RESHAPE" and place == 1:
                    self._compare(self._own_shape(operators[0], indices), is_shape=True)
                else:
                    self._compare(indices)
            for indices in _columns([operator.outputs for operator in operators]):
                self._compare(indices)
        for side in ("inputs", "outputs"):
            for indices in _columns([getattr(graph, side) for graph in self.graphs]):
                self._compare(indices)

    def counterparts(self, index: int) -> list[Any]:
        """A tensor in every graph."""
        indices = self._indices[int(index)]
        return [graph.tensors[i] for graph, i in zip(self.graphs, indices, strict=True)]

    def _own_shape(self, operator: Any, indices: tuple[int, ...]) -> tuple[int, ...]:
        """Copy a shape that two RESHAPEs share at the first length and at no other."""
        first, *others = indices
        if self._indices.get(first, indices) == indices:
            return indices
        self.graphs[0].tensors.append(copy.copy(self.graphs[0].tensors[first]))
        operator.inputs = [operator.inputs[0], len(self.graphs[0].tensors) - 1]
        return (operator.inputs[1], *others)

    def _compare(self, indices: tuple[int, ...], is_shape: bool = False) -> None:
        first = indices[0]
        if first < 0:  # an input that is left out
            return _require_same(indices)
        if first in self._indices:
            return _require_same([self._indices[first], indices])
        self._indices[first] = indices
        tensors = self.counterparts(first)
        _require_same([(tensor.type, len(shape_of(tensor))) for tensor in tensors])
        if not all(_same_quantization(tensors[0], tensor) for tensor in tensors[1:]):
            raise _Differ
        data = [self.model.buffers[tensor.buffer].data for tensor in tensors]
        _require_same([values is None for values in data])
        if data[0] is None or len({tensor.buffer for tensor in tensors}) == 1:
            return None
        if is_shape:
            self.shapes[first] = _any_shape([_bytes(d).view(np.int32) for d in data])
        else:
            self._check_table([shape_of(tensor) for tensor in tensors], data)
            self.tables[first] = tensors[-1]
        return None

    def _check_table(self, shapes: list[tuple[int, ...]], data: list[Any]) -> None:
        """Require that constants are the start of the longest one along axes of the length."""
        width = _bytes(data[-1]).size // int(np.prod(shapes[-1]))
        longest = _bytes(data[-1]).view(f"V{width}").reshape(shapes[-1])
        for length, shape, raw in zip(self.lengths, shapes, data, strict=True):
            pairs = zip(shape, shapes[-1], strict=True)
            start = longest[tuple(slice(size) for size in shape)]
            if any(s not in (length, full) for s, full in pairs) or start.tobytes() != bytes(raw):
                raise _Differ


def _require_same(values: Sequence[Any]) -> None:
    if any(value != values[0] for value in values[1:]):
        raise _Differ


def _columns(rows: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """What is at the same place of every row."""
    _require_same([len(row) for row in rows])
    return [tuple(int(index) for index in column) for column in zip(*rows, strict=True)]


def _options(operator: Any) -> Any:
    values = {} if operator.builtinOptions is None else vars(operator.builtinOptions)
    return {name: repr(value) for name, value in values.items() if name != "newShape"}


def _same_quantization(first: Any, second: Any) -> bool:
    if first.quantization is None or second.quantization is None:
        return first.quantization is second.quantization
    scales = [tensor.quantization.scale for tensor in (first, second)]
    zeros = [tensor.quantization.zeroPoint for tensor in (first, second)]
    if scales[0] is None or scales[1] is None:
        return scales[0] is scales[1]
    return same_scale(*scales) and bool(np.array_equal(*zeros))


def _bytes(data: Any) -> Any:
    return np.frombuffer(bytes(data), np.uint8)


def _any_shape(shapes: list[Any]) -> Any:
    """The shape that is each of these at its length; one dimension can be left to the runtime."""
    _require_same([len(shape) for shape in shapes])
    shape = [s[0] if len(set(s)) == 1 else ANY for s in zip(*shapes, strict=True)]
    if shape.count(ANY) != 1:
        raise _Differ
    return np.array(shape, np.int32)


def _look_up(model: Any, graph: Any, tables: Mapping[int, Any]) -> None:
    """Let constants of the length's size be looked up in the longest, at positions 0, 1, ...

    The positions are a running sum of ones, whose number follows from that of the token ids.
    """
    readers, front = list(graph.operators), []
    integer = schema.TensorType.INT32

    def tensor(shape: Sequence[int], like: Any = None, buffer: int = 0) -> int:
        made = schema.TensorT()
        made.name, made.buffer, made.shape = b"position", buffer, np.array(shape, np.int32)
        made.type = integer if like is None else like.type
        made.quantization = None if like is None else like.quantization
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def constant(*values: int) -> int:
        return tensor(() if len(values) == 1 else (len(values),), buffer=store(model, values))

    def add(name: str, inputs: list[int], output: int, **options: Any) -> int:
        operator = make_operator(model, name, inputs, [output])
        vars(operator.builtinOptions).update(options)
        front.append(operator)
        return output

    ids = int(graph.inputs[0])  # or the mask: any input of [1, length]
    shape = shape_of(graph.tensors[ids])
    zeros = add("MUL", [ids, constant(0)], tensor(shape))
    ones = add("ADD", [zeros, constant(1)], tensor(shape))
    row = tensor([1], buffer=store(model, [ANY]))
    flat = add("RESHAPE", [ones, row], tensor(shape[1:]), newShape=np.array([ANY], np.int32))
    positions = add("CUMSUM", [flat, constant(0)], tensor(shape[1:]), exclusive=True)
    for index, longest in tables.items():
        short, found = shape_of(graph.tensors[index]), list(shape_of(longest))
        result = tensor(found, longest, longest.buffer)
        for axis, size in enumerate(short):
            if size != found[axis]:
                found[axis] = size
                result = add("GATHER", [result, positions], tensor(found, longest), axis=axis)
        for operator in readers:
            operator.inputs = [result if i == index else i for i in operator.inputs]
    graph.operators = [*front, *readers]
