"""Weights in blocks with a scale each: onnxruntime's MatMulNBits and GatherBlockQuantized.

Both are of com.microsoft. 4-bit blocks are asymmetric (16 levels are too few to waste one), 8-bit
ones symmetric.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from edgebert.pipeline.runtimes.stored_tensor import layer_name
from edgebert.pipeline.stages.blocks import Bytes, Levels, pack_nibbles
from edgebert.pipeline.stages.gptq import Moments, quantize_matrix
from edgebert.pipeline.stages.onnx_weights import (
    initializers,
    replace_nodes,
    store,
    stored_matrix,
    stored_table,
)

TABLE_BLOCK = 64


def block_levels(bits: int, block: int) -> Levels:
    """What a block of an ONNX file can hold."""
    return Levels(bits, block, symmetric=bits == 8)


def matmuls_to_blocks(
    proto: onnx.ModelProto, bits: int, block: int, moments: Moments | None = None
) -> None:
    """Turn MatMul with a stored matrix into onnxruntime's MatMulNBits.

    `accuracy_level` 4 lets it compute with int8 activations, quantized by block and row as it runs;
    the attribute travels with the file, so that no session option has to be set on the device.

    Args:
        proto: the fp32 graph; changed in place.
        bits: 4 or 8.
        block: inputs of a channel that share a scale.
        moments: of the layers' inputs, to round with (gptq.py); None rounds to the nearest.
    """
    nodes = []
    for node in proto.graph.node:
        matrix = stored_matrix(proto, node)
        if matrix is None:
            nodes.append(node)
            continue
        name = node.input[1]
        depth, columns = matrix.shape
        if f"{name}_q{bits}" not in initializers(proto):  # depths share it
            seen = (moments or {}).get(layer_name(name))
            blocks = quantize_matrix(matrix.T, block_levels(bits, block), seen)
            store(proto, f"{name}_q{bits}", pack_nibbles(blocks.q) if bits == 4 else blocks.q)
            store(proto, f"{name}_scale", blocks.scale.reshape(-1))
            store(proto, f"{name}_zero", pack_nibbles(blocks.zero).reshape(-1))
        inputs = [node.input[0], f"{name}_q{bits}", f"{name}_scale"]
        if bits == 4:  # 128 is the operator's own zero point for 8 bits
            inputs.append(f"{name}_zero")
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


def embeddings_to_int4(proto: onnx.ModelProto) -> None:
    """Store tables that Gather reads in 4 bits; only the rows that are read are widened.

    A third of an ALBERT is its table, and no error feedback reaches it: its blocks are short, and
    their scales fp16. GatherBlockQuantized takes 4 bits as uint4 since onnxruntime 1.20, packed in
    uint8 only after 1.22.
    """
    levels = Levels(4, TABLE_BLOCK, symmetric=False, half_scales=True)
    nodes = []
    for node in proto.graph.node:
        table = stored_table(proto, node)
        if table is None:
            nodes.append(node)
            continue
        name = node.input[0]
        if f"{name}_q4" not in initializers(proto):
            blocks = levels.quantize(table)
            rows, columns = table.shape
            _store_uint4(proto, f"{name}_q4", blocks.q.reshape(rows, -1)[:, :columns])
            store(proto, f"{name}_scale", blocks.scale.astype(np.float16))
            _store_uint4(proto, f"{name}_zero", blocks.zero)
        half, out = f"{node.output[0]}_half", node.output[0]
        nodes += [
            helper.make_node(
                "GatherBlockQuantized",
                [f"{name}_q4", node.input[1], f"{name}_scale", f"{name}_zero"],
                [half],
                node.name,
                domain="com.microsoft",
                gather_axis=0,
                quantize_axis=1,
                block_size=levels.block,
            ),
            helper.make_node("Cast", [half], [out], f"{node.name}_cast", to=TensorProto.FLOAT),
        ]
    replace_nodes(proto, nodes)


def _store_uint4(proto: onnx.ModelProto, name: str, value: Bytes) -> None:
    packed = pack_nibbles(np.ravel(value)).tobytes()
    tensor = helper.make_tensor(name, TensorProto.UINT4, value.shape, packed, raw=True)
    proto.graph.initializer.append(tensor)
