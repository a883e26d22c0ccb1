"""How a graph of any length writes what depends on the length, in a parsed .tflite file."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgebert.pipeline.runtimes.tflite_file import shape_of
from edgebert.pipeline.runtimes.tflite_loop import make_operator, store

ANY = -1  # a dimension that the runtime works out


class Differ(Exception):
    """Graphs differ in more than the length."""


def require_same(values: Sequence[Any]) -> None:
    """Raise `Differ` where values are not all equal."""
    if any(value != values[0] for value in values[1:]):
        raise Differ


def any_shape(shapes: list[Any]) -> Any:
    """The shape that is each of these at its length; one dimension can be left to the runtime."""
    require_same([len(shape) for shape in shapes])
    shape = [s[0] if len(set(s)) == 1 else ANY for s in zip(*shapes, strict=True)]
    if shape.count(ANY) != 1:
        raise Differ
    return np.array(shape, np.int32)


def from_behind(ends: list[Any], shapes: list[tuple[int, ...]]) -> tuple[Any, int]:
    """Where a slice ends at every length: a negative number is counted from the end of the axis.

    Returns:
        the ends, and the axes (as bits) where it ends with the axis.
    """
    found, mask = ends[0].copy(), 0
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        if len({int(end[axis]) for end in ends}) > 1:
            left = [size - int(end[axis]) for size, end in zip(sizes, ends, strict=True)]
            require_same(left)
            found[axis] = -left[0]
            mask |= (left[0] == 0) << axis
    return found, mask


def cut(model: Any, graph: Any, operator: Any, ends: Any, mask: int) -> None:
    """Make a SLICE or a STRIDED_SLICE one with these ends."""
    tensors = graph.tensors
    end, strides = copy.copy(tensors[operator.inputs[2]]), copy.copy(tensors[operator.inputs[2]])
    end.buffer, strides.buffer = store(model, ends), store(model, np.ones_like(ends))
    tensors += [end, strides]
    source, start = (int(index) for index in operator.inputs[:2])
    place = len(tensors) - 2
    if len(operator.inputs) > 3:
        operator.inputs = [source, start, place, int(operator.inputs[3])]
        operator.builtinOptions.endMask |= mask
    else:
        outputs = list(operator.outputs)
        made = make_operator(model, "STRIDED_SLICE", [source, start, place, place + 1], outputs)
        vars(operator).update(vars(made))
        operator.builtinOptions.endMask = mask


def look_up(model: Any, graph: Any, tables: Mapping[int, Any]) -> None:
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
