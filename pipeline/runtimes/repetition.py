"""Find the layer that a graph repeats with the same weights, whatever format the graph is in."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Node:
    """An operator.

    Attributes:
        key: all that decides what it computes, but for its inputs.
        inputs, outputs: names of tensors.
        moves_data: False where the result says nothing of the values of the inputs (a shape).
    """

    key: Hashable
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    moves_data: bool = True


@dataclass(frozen=True)
class Repetition:
    """A part of a graph that is there several times in a row.

    Attributes:
        start: the tensor that the first pass takes.
        first_end: the tensor that the first pass gives and the second one takes.
        end: the tensor that the last pass gives.
        passes: for each pass its nodes by their number; node i of one is node i of the other.
        replaced: nodes that nothing else reads: all but constants that others widen as well.
    """

    start: str
    first_end: str
    end: str
    passes: tuple[tuple[int, ...], ...]
    replaced: frozenset[int]


@dataclass(frozen=True)
class _Segment:
    nodes: tuple[int, ...]
    key: Hashable


class _Graph:
    def __init__(
        self, nodes: Sequence[Node], outputs: Collection[str], constants: Mapping[str, Hashable]
    ) -> None:
        self.nodes, self.outputs, self.constants = nodes, outputs, constants
        self.producers = {name: i for i, node in enumerate(nodes) for name in node.outputs}
        self.widened: set[str] = set()  # made of constants alone, such as a dequantized weight
        for node in nodes:
            if node.inputs and all(n in constants or n in self.widened for n in node.inputs):
                self.widened |= set(node.outputs)

    def cuts(self, inputs: Collection[str]) -> list[str]:
        """Tensors that hold, alone, all that the inputs have led to so far."""
        data, last = set(inputs), dict.fromkeys(self.outputs, len(self.nodes))
        for index, node in enumerate(self.nodes):
            if node.moves_data and data & set(node.inputs):
                last = last | dict.fromkeys(data & set(node.inputs) - set(self.outputs), index)
                data |= set(node.outputs)
        found: list[str] = []
        alive = set(inputs) & set(last)
        for index, node in enumerate(self.nodes):
            alive = {name for name in alive if last[name] > index}
            alive |= data & set(last) & set(node.outputs)
            if len(alive) == 1 and alive & set(node.outputs):
                found += alive
        return found

    def segment(self, start: str, end: str) -> _Segment:
        """What computes `end` from `start`, in an order that does not depend on names."""
        within = {start, *self.widened}
        for node in self.nodes[: self.producers[end] + 1]:
            if within & set(node.inputs):
                within |= set(node.outputs)
        places: dict[str, tuple[int, int]] = {}  # tensor -> place of its node, and of it there
        found: list[int] = []
        key: list[Hashable] = []

        def walk(name: str) -> None:
            index = self.producers[name]
            node = self.nodes[index]
            for source in node.inputs:
                if source in within and source != start and source not in places:
                    walk(source)
            places.update({output: (len(found), i) for i, output in enumerate(node.outputs)})
            found.append(index)
            key.append((node.key, len(node.outputs)))
            for source in node.inputs:
                place = "start" if source == start else places.get(source)
                key.append(place or (self.constants.get(source, source),))

        walk(end)
        return _Segment(tuple(found), tuple(key))

    def repetition(
        self, start: str, first_end: str, end: str, passes: tuple[tuple[int, ...], ...]
    ) -> Repetition | None:
        """The repetition, where nothing else reads what is inside but its end and constants."""
        replaced = {index for nodes in passes for index in nodes}
        while True:
            read = {
                n for i, node in enumerate(self.nodes) if i not in replaced for n in node.inputs
            }
            read = (read | set(self.outputs)) - {end}
            kept = {index for index in replaced if read & set(self.nodes[index].outputs)}
            if not kept:
                return Repetition(start, first_end, end, passes, frozenset(replaced))
            if not all(set(self.nodes[index].outputs) <= self.widened for index in kept):
                return None
            replaced -= kept


def find_repetition(
    nodes: Sequence[Node],
    inputs: Collection[str],
    outputs: Collection[str],
    constants: Mapping[str, Hashable],
    weights: Collection[str],
) -> Repetition | None:
    """The repetition that saves most nodes.

    Args:
        nodes: of the graph, each after what it reads.
        inputs: those whose values the layers transform (the ids, not the mask).
        outputs: of the graph.
        constants: stored tensor -> what has to be the same in every pass: its content, or only its
            form where each pass may have its own.
        weights: tensors of which at least one has to be read in every pass.
    """
    graph = _Graph(nodes, outputs, constants)
    cuts = graph.cuts(inputs)
    segments = [graph.segment(start, end) for start, end in pairwise(cuts)]
    keys = [segment.key for segment in segments]
    best: tuple[int, int, Repetition] | None = None  # nodes saved, period
    for period in range(1, len(keys) // 2 + 1):
        equal = 0  # segments in a row that are like the one a period further
        for start in reversed(range(len(keys) - period)):
            equal = equal + 1 if keys[start] == keys[start + period] else 0
            repeats = equal // period + 1
            first = [i for segment in segments[start : start + period] for i in segment.nodes]
            saved = (repeats - 1) * len(first)
            # Of equal ones the shorter period, and of one period the earlier start.
            if repeats < 2 or (best and (saved, -period) < (best[0], -best[1])):
                continue
            if not any(set(weights) & set(nodes[i].inputs) for i in first):
                continue
            passes = tuple(
                tuple(i for s in segments[begin : begin + period] for i in s.nodes)
                for begin in range(start, start + period * repeats, period)
            )
            ends = cuts[start], cuts[start + period], cuts[start + period * repeats]
            found = graph.repetition(*ends, passes)
            if found is not None:
                best = saved, period, found
    return best[2] if best else None
