"""A matrix in blocks of inputs that share a scale: value = (q - zero) * scale.

Both formats store 4 and 8 bits so, and differ in their levels: a zero point a block or none, and
the precision of a scale.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Blocks:
    """A quantized matrix [rows, columns]; the last block of a row may be longer than its values.

    Attributes:
        q: [rows, blocks, block], from 0 up.
        scale: [rows, blocks].
        zero: the q that means 0, [rows, blocks].
    """

    q: Bytes
    scale: Array
    zero: Bytes

    def restored(self, columns: int) -> Array:
        """The values that are computed with, [rows, columns]."""
        values = (self.q.astype(np.float32) - self.zero[..., None]) * self.scale[..., None]
        matrix: Array = values.reshape(len(values), -1)[:, :columns]
        return matrix


@dataclass(frozen=True)
class Levels:
    """Which values a block can have.

    Attributes:
        bits: of a q.
        block: values that share a scale.
        symmetric: 0 is the middle q of every block; else each block has its own zero point.
        half_scales: scales that fp16 and bfloat16 both hold exactly.
    """

    bits: int
    block: int
    symmetric: bool
    half_scales: bool = False

    def of(self, values: Array) -> tuple[Array, Bytes]:
        """Scale and zero point [...] of blocks [..., block], from their smallest and largest value.

        |error| <= scale / 2 where they are symmetric; a rounded zero point can cost the ends of a
        range as much again. A narrower span that minimizes the squared error of the weights gains
        nothing that the logits show.
        """
        top = 2**self.bits - 1
        if self.symmetric:
            middle = 2 ** (self.bits - 1)
            scale = self._usable(np.abs(values).max(axis=-1) / (middle - 1))
            return scale, np.full(scale.shape, middle, np.uint8)
        low, high = np.minimum(values.min(axis=-1), 0), np.maximum(values.max(axis=-1), 0)
        scale = self._usable((high - low) / top)
        return scale, np.clip(np.rint(-low / scale), 0, top).astype(np.uint8)

    def round(self, values: Array, scale: Array, zero: Bytes) -> Bytes:
        """The nearest q; the scales and zero points have the shape of the values, or 1."""
        q: Bytes = np.clip(np.rint(values / scale) + zero, 0, 2**self.bits - 1).astype(np.uint8)
        return q

    def quantize(self, matrix: Array) -> Blocks:
        """Round every value of [rows, columns] to its nearest level."""
        rows, columns = matrix.shape
        padded = np.zeros((rows, -(-columns // self.block) * self.block), np.float32)
        padded[:, :columns] = matrix
        grouped = padded.reshape(rows, -1, self.block)
        scale, zero = self.of(grouped)
        return Blocks(self.round(grouped, scale[..., None], zero[..., None]), scale, zero)

    def _usable(self, scale: Array) -> Array:
        """Rounded as they are stored; 1 for blocks of zeros, which any scale keeps exact."""
        smallest = float(np.finfo(np.float32).tiny)  # below it a quotient loses its bits
        if self.half_scales:
            fraction, exponent = np.frexp(scale)
            rounded = np.ldexp(np.rint(fraction * 256) / 256, exponent)  # 8 bits, as bfloat16
            scale = rounded.astype(np.float16).astype(np.float32)
            smallest = 0.0
        return np.where(scale > smallest, scale, 1).astype(np.float32)


def pack_nibbles(value: Bytes) -> Bytes:
    """Two 4-bit numbers a byte along the last dimension, the first one in the low half."""
    if value.shape[-1] % 2:
        value = np.concatenate([value, np.zeros_like(value[..., :1])], axis=-1)
    return (value[..., ::2] | value[..., 1::2] << 4).astype(np.uint8)
