"""Signatures of several token lengths as one graph for all of them, in a parsed .tflite file.

XNNPACK packs the weights of every signature when the first one runs: a file with three lengths is
in memory three times. Of one graph there is one packed copy, which stays when its inputs are
resized. The signatures keep their names and all lead to that graph, the file's first; whoever runs
one resizes its inputs, as LiteRT's signature runners do by themselves for arrays.

Graphs that differ in more than the length stay as they are: static activation scales are those of
the length's texts, and DeBERTa, MPNet and XLNet work with tables of [length, length].
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgebert.pipeline.runtimes.tflite_any_length import (
    ANY,
    Differ,
    any_shape,
    cut,
    from_behind,
    look_up,
    require_same,
)
from edgebert.pipeline.runtimes.tflite_file import operator_name, shape_of, text_of
from edgebert.pipeline.runtimes.tflite_loop import same_scale, store


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
    except Differ:
        return False
    graph = graphs[0]
    for index, shape in differences.shapes.items():
        graph.tensors[index].buffer = store(model, shape)
    for operator in graph.operators:
        if hasattr(operator.builtinOptions, "newShape"):  # a copy of a RESHAPE's second input
            operator.builtinOptions.newShape = differences.shapes.get(
                int(operator.inputs[-1]), operator.builtinOptions.newShape
            )
    for operator, ends, mask in differences.ends:
        cut(model, graph, operator, ends, mask)
    for index in [*graph.inputs, *graph.outputs]:
        sizes = (shape_of(tensor) for tensor in differences.counterparts(index))
        signature_shape = [s[0] if len(set(s)) == 1 else ANY for s in zip(*sizes, strict=True)]
        graph.tensors[index].shapeSignature = np.array(signature_shape, np.int32)
    if differences.tables:
        look_up(model, graph, differences.tables)
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
        ends: slice, where it ends counted from behind, and the axes (as bits) that it takes whole.
    """

    def __init__(self, model: Any, lengths: Sequence[int], graphs: Sequence[Any]) -> None:
        self.model, self.lengths, self.graphs = model, lengths, graphs
        self.shapes: dict[int, Any] = {}
        self.tables: dict[int, Any] = {}
        self.ends: list[tuple[Any, Any, int]] = []
        self._indices: dict[int, tuple[int, ...]] = {}  # tensor -> it in every graph

    def find(self) -> None:
        """Compare operator by operator.

        Raises:
            Differ: there is no one graph for all lengths.
        """
        require_same([len(graph.operators) for graph in self.graphs])
        for operators in zip(*(graph.operators for graph in self.graphs), strict=True):
            require_same([operator.opcodeIndex for operator in operators])
            require_same([_options(operator) for operator in operators])
            name = operator_name(self.model.operatorCodes[operators[0].opcodeIndex])
            for place, indices in enumerate(_columns([o.inputs for o in operators])):
                if name == "RESHAPE" and place == 1:
                    self._compare(self._own_shape(operators[0], indices), is_shape=True)
                elif name in ("SLICE", "STRIDED_SLICE") and place == 2:
                    self._compare_ends(operators, indices, from_start=name == "SLICE")
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

    def _compare_ends(
        self, operators: Sequence[Any], indices: tuple[int, ...], from_start: bool
    ) -> None:
        """Compare where slices end; from the start of the slice, or of the tensor."""
        ends, sizes = [], []
        for graph, operator, index in zip(self.graphs, operators, indices, strict=True):
            start, end = (self._integers(graph.tensors[i]) for i in (operator.inputs[1], index))
            ends.append(end + start * from_start)
            sizes.append(shape_of(graph.tensors[operator.inputs[0]]))
        if any((end != ends[0]).any() for end in ends):
            self.ends.append((operators[0], *from_behind(ends, sizes)))
        else:
            self._compare(indices)

    def _integers(self, tensor: Any) -> Any:
        data = self.model.buffers[tensor.buffer].data
        if data is None or tensor.type != schema.TensorType.INT32:
            raise Differ
        return _bytes(data).view(np.int32)

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
            return require_same(indices)
        if first in self._indices:
            return require_same([self._indices[first], indices])
        self._indices[first] = indices
        tensors = self.counterparts(first)
        require_same([(tensor.type, len(shape_of(tensor))) for tensor in tensors])
        if not all(_same_quantization(tensors[0], tensor) for tensor in tensors[1:]):
            raise Differ
        data = [self.model.buffers[tensor.buffer].data for tensor in tensors]
        require_same([values is None for values in data])
        if data[0] is None or len({tensor.buffer for tensor in tensors}) == 1:
            return None
        if is_shape:
            self.shapes[first] = any_shape([_bytes(d).view(np.int32) for d in data])
        else:
            self._check_table([shape_of(tensor) for tensor in tensors], data)
            self.tables[first] = tensors[-1]
        return None

    def _check_table(self, shapes: list[tuple[int, ...]], data: list[Any]) -> None:
        """Require that constants are the start of the longest one along axes of the length."""
        width, rest = divmod(_bytes(data[-1]).size, int(np.prod(shapes[-1])))
        if rest or not width:  # several numbers a byte
            raise Differ
        longest = _bytes(data[-1]).view(f"V{width}").reshape(shapes[-1])
        for length, shape, raw in zip(self.lengths, shapes, data, strict=True):
            pairs = zip(shape, shapes[-1], strict=True)
            start = longest[tuple(slice(size) for size in shape)]
            if any(s not in (length, full) for s, full in pairs) or start.tobytes() != bytes(raw):
                raise Differ


def _columns(rows: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """What is at the same place of every row."""
    require_same([len(row) for row in rows])
    return [tuple(int(index) for index in column) for column in zip(*rows, strict=True)]


def _options(operator: Any) -> Any:
    values = {} if operator.builtinOptions is None else vars(operator.builtinOptions)
    copied = ("newShape",) if len(operator.inputs) == 2 else ()  # of the second input
    return {name: repr(value) for name, value in values.items() if name not in copied}


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
