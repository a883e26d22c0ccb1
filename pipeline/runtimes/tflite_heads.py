"""Attention without reshapes between four dimensions and three, in a parsed .tflite file.

litert-torch writes a product over [batch, heads, a, b] as a BATCH_MATMUL over [batch * heads, a, b]
with a RESHAPE before and after. XNNPACK copies the tensor for each, and a graph of any length
cannot have the one of [heads, length, length], since one dimension at most is left to the runtime.
The batch is 1 on a device, and BATCH_MATMUL takes four dimensions: the reshapes can go.
"""

from typing import Any

import numpy as np

from edgebert.pipeline.runtimes.tflite_file import operator_name, shape_of

# What gives the same result with a dimension of 1 in front of its operands'.
POINTWISE = ("ADD", "MUL", "SUB", "DIV", "SOFTMAX", "MAXIMUM", "MINIMUM")


def keep_batch(model: Any) -> int:
    """Give the products of attention their batch dimension back, in place.

    Returns:
        the number of products that have it now.
    """
    return sum(_Graph(model, graph).rewrite() for graph in model.subgraphs)


class _Graph:
    def __init__(self, model: Any, graph: Any) -> None:
        self.model, self.graph = model, graph
        self.readers: dict[int, list[Any]] = {}
        self.makers: dict[int, Any] = {}
        for operator in graph.operators:
            for index in operator.inputs:
                self.readers.setdefault(int(index), []).append(operator)
            for index in operator.outputs:
                self.makers[int(index)] = operator

    def rewrite(self) -> int:
        count = 0
        for operator in self.graph.operators:
            if self._name(operator) == "BATCH_MATMUL" and self._widen(operator):
                count += 1
        if count:
            self._drop_idle_reshapes()
        return count

    def _name(self, operator: Any) -> str:
        return operator_name(self.model.operatorCodes[operator.opcodeIndex])

    def _shape(self, index: int) -> tuple[int, ...]:
        return shape_of(self.graph.tensors[index])

    def _widen(self, product: Any) -> bool:
        """Let a product of three dimensions work on four, and what follows it up to a RESHAPE."""
        sources = [self._with_batch(int(index)) for index in product.inputs]
        following: list[int] = []
        if None in sources or not self._follow(int(product.outputs[0]), following):
            return False
        product.inputs = sources
        for index in following:
            self.graph.tensors[index].shape = np.array([1, *self._shape(index)], np.int32)
        return True

    def _with_batch(self, index: int) -> int | None:
        """The tensor of four dimensions that a RESHAPE took the first one, of 1, from."""
        if len(self._shape(index)) == 4:
            return index
        maker = self.makers.get(index)
        if maker is None or self._name(maker) != "RESHAPE":
            return None
        source = int(maker.inputs[0])
        return source if self._shape(source) == (1, *self._shape(index)) else None

    def _follow(self, index: int, found: list[int]) -> bool:
        """Collect the tensors of three dimensions that get four with this one; False: cannot."""
        if len(self._shape(index)) != 3 or index in map(int, self.graph.outputs):
            return False
        found.append(index)
        for reader in self.readers.get(index, []):
            output = int(reader.outputs[0])
            if self._name(reader) == "RESHAPE" or output in found:
                continue
            if self._name(reader) not in POINTWISE:
                return False
            if len(self._shape(output)) == 3 and not self._follow(output, found):
                return False
        return True

    def _drop_idle_reshapes(self) -> None:
        """Take out the RESHAPEs that change nothing, or whose result nobody reads."""
        outputs = set(map(int, self.graph.outputs))
        same: dict[int, int] = {}
        kept = []
        for operator in self.graph.operators:
            operator.inputs = [same.get(int(i), int(i)) for i in operator.inputs]
            if self._name(operator) == "RESHAPE":
                source, result = int(operator.inputs[0]), int(operator.outputs[0])
                if self._shape(source) == self._shape(result) and result not in outputs:
                    same[result] = source
                    continue
            kept.append(operator)
        read = outputs | {i for operator in kept for i in operator.inputs}
        self.graph.operators = [
            op for op in kept if self._name(op) != "RESHAPE" or int(op.outputs[0]) in read
        ]
