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
