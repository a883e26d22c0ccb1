"""Weights in blocks with a scale each, computed by onnxruntime's MatMulNBits."""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgebert.pipeline.runtimes.stored_tensor import LARGE
from edgebert.pipeline.stages.onnx_weights import replace_nodes, store, weight

Array = npt.NDArray[np.float32]


def quantize_blocks(
    value: Array, bits: int, block: int
) -> tuple[npt.NDArray[np.uint8], Array, npt.NDArray[np.uint8]]:
    """Blocks along the first dimension of [K, N], laid out as MatMulNBits reads them.

    4-bit blocks are asymmetric (16 levels are too few to waste one), 8-bit ones symmetric.

    Returns:
        q [N, blocks, block * bits / 8], scales [N * blocks], zero points (packed for 4 bits), with
        value = (q - zero) * scale. |error| <= scale / 2 at 8 bits; at 4 bits the rounded zero point
        can cost the ends of a range as much again.
    """
    depth, columns = value.shape
    blocks = -(-depth // block)
    padded = np.zeros((blocks * block, columns), np.float32)
    padded[:depth] = value
    grouped = padded.T.reshape(columns, blocks, block)
    tiny = np.finfo(np.float32).tiny
    if bits == 8:
        largest = np.abs(grouped).max(axis=2)
        scale = np.where(largest / 127 > tiny, largest / 127, 1).astype(np.float32)
        q = np.clip(np.rint(grouped / scale[..., None]), -127, 127) + 128
        zero = np.full((columns, blocks), 128, np.uint8)
        return q.astype(np.uint8), scale.reshape(-1), zero.reshape(-1)
    low = np.minimum(grouped.min(axis=2), 0)
    high = np.maximum(grouped.max(axis=2), 0)
    scale = np.where((high - low) / 15 > tiny, (high - low) / 15, 1).astype(np.float32)
    zero = np.clip(np.rint(-low / scale), 0, 15).astype(np.uint8)
    q = np.clip(np.rint(grouped / scale[..., None]) + zero[..., None], 0, 15).astype(np.uint8)
    return pack_nibbles(q), scale.reshape(-1), pack_nibbles(zero)


def pack_nibbles(value: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Two 4-bit numbers a byte along the last dimension, the first one in the low half."""
    if value.shape[-1] % 2:
        value = np.concatenate([value, np.zeros_like(value[..., :1])], axis=-1)
    return (value[..., ::2] | value[..., 1::2] << 4).astype(np.uint8)


def matmuls_to_blocks(proto: onnx.ModelProto, bits: int, block: int) -> None:
    """Turn MatMul with a stored matrix into onnxruntime's MatMulNBits (com.microsoft).

    `accuracy_level` 4 lets it compute with int8 activations, quantized by block and row as it runs;
    the attribute travels with the file, so that no session option has to be set on the device.
    """
    nodes = []
    for node in proto.graph.node:
        matrix = weight(proto, node.input[1]) if node.op_type == "MatMul" else None
        if matrix is None or matrix.size <= LARGE:
            nodes.append(node)
            continue
        name = node.input[1]
        q, scale, zero = quantize_blocks(matrix, bits, block)
        inputs = [
            node.input[0],
            store(proto, f"{name}_q{bits}", q),
            store(proto, f"{name}_scale", scale),
        ]
        if bits < 8:  # 128 is the operator's own zero point for 8 bits
            inputs.append(store(proto, f"{name}_zero", zero.reshape(-1)))
        depth, columns = matrix.shape
        nodes.append(
            helper.make_node(
                "MatMulNBits",
                inputs,
                list(node.output),
                node.name,
                domain="com.microsoft",
                K=depth,
                N=columns,
                bits=bits,
                block_size=block,
                accuracy_level=4,
            )
        )
    replace_nodes(proto, nodes)
