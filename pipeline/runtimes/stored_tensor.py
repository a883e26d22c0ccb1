"""A constant in a model file of either format."""

import math
from dataclasses import dataclass

# What counts as a matrix of an int8 artifact: biases and LayerNorm weights are far below it.
LARGE = 10_000


@dataclass(frozen=True)
class StoredTensor:
    """A tensor that the file stores; one that several use counts once.

    Attributes:
        name: its name, or that of the first tensor that has it.
        dtype: element type as the format names it: `float` or `float32`, `int8`, `int4`, ...
        shape: its dimensions.
        size_bytes: what it takes in the file.
        operator: the operator that reads it, the first one where several do.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    operator: str = ""

    @property
    def elements(self) -> int:
        """Number of stored elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layer:
    """What is quantized or left in fp32 as a whole: a matrix product, or a table of vectors.

    Attributes:
        name: the module of the checkpoint that it is, such as `bert.pooler.dense`.
        parameters: elements of its matrix.
        uses: how often the model runs it; more than 1 where depths share it.
    """

    name: str
    parameters: int
    uses: int


def layer_name(tensor: str) -> str:
    """The layer that a stored tensor belongs to: `a.b` of `a.b.weight`, `a.b.weight.T`, ..."""
    return tensor.partition(".weight")[0]
