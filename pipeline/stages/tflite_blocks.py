"""Store the weights of a quantized .tflite file in int4 blocks.

XNNPACK multiplies them with int8 activations that have a scale a token. What it has no kernel for
(other operators, rows that blocks do not divide) stays in int8, as ai-edge-quantizer left it.
Before ai-edge-litert 2.1 the runtimes read the blocks wrongly and say nothing; from the version of
the operator, they refuse the file (`tflite_rewrite.correct_versions`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgebert.pipeline.runtimes.stored_tensor import LARGE, Layer
from edgebert.pipeline.runtimes.tflite_blocks import blockwise
from edgebert.pipeline.runtimes.tflite_file import operator_name, shape_of
from edgebert.pipeline.stages.blocks import Blocks, Bytes, Levels, pack_nibbles
from edgebert.pipeline.stages.gptq import Moments, quantize_matrix

READERS = ("FULLY_CONNECTED", "EMBEDDING_LOOKUP")  # the weights are their second input


def store_in_blocks(
    fp32: Any,
    quantized: Any,
    block: int,
    layers: Mapping[int, Layer] | None = None,
    moments: Moments | None = None,
) -> int:
    """Store large matrices in int4 with a scale for `block` values of a row; in place.

    Args:
        fp32: the parsed fp32 file.
        quantized: the same file with every layer in int8.
        block: 32, 64, 128 or 256.
        layers: buffers of the fp32 file by the layer that they are, where there are moments.
        moments: of the layers' inputs, to round with (gptq.py); None rounds to the nearest.

    Returns:
        how many matrices.
    """
    levels = Levels(4, block, symmetric=True, half_scales=True)
    stored: dict[int, tuple[int, int]] = {}  # buffer of the fp32 file -> of q, of the scales
    for before, after in zip(fp32.subgraphs, quantized.subgraphs, strict=True):
        originals = {tensor.name: tensor for tensor in before.tensors}
        for tensor in _weights(quantized, after):
            original = originals.get(tensor.name)
            if original is None or original.type != schema.TensorType.FLOAT32:
                continue
            rows, columns = shape_of(tensor)
            if rows * columns <= LARGE or columns % block:
                continue
            if original.buffer not in stored:
                data = bytes(fp32.buffers[original.buffer].data)
                layer = (layers or {}).get(original.buffer)
                seen = (moments or {}).get(layer.name) if layer else None
                matrix = np.frombuffer(data, np.float32).reshape(rows, columns)
                stored[original.buffer] = _store(quantized, quantize_matrix(matrix, levels, seen))
            tensor.buffer, scales = stored[original.buffer]
            tensor.type = schema.TensorType.INT4
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
            tensor.quantization.details = blockwise(len(after.tensors), block)
            after.tensors.append(_scales(tensor, (rows, columns // block), scales))
    return len(stored)


def _weights(model: Any, graph: Any) -> list[Any]:
    """Int8 constants that nothing reads but as the weights of READERS."""
    weights: set[int] = set()
    others: set[int] = set()
    for operator in graph.operators:
        reads_blocks = operator_name(model.operatorCodes[operator.opcodeIndex]) in READERS
        for place, index in enumerate(operator.inputs):
            (weights if reads_blocks and place == 1 else others).add(int(index))
    tensors = [graph.tensors[index] for index in sorted(weights - others)]
    return [tensor for tensor in tensors if tensor.type == schema.TensorType.INT8]


def _store(model: Any, blocks: Blocks) -> tuple[int, int]:
    """Add buffers of the weights, two's complement, and of their fp16 scales."""
    signed: Bytes = blocks.q - blocks.zero[..., None]  # bytes wrap around, and so do nibbles
    nibbles = pack_nibbles(signed.reshape(-1) & np.uint8(15))
    for data in (nibbles, blocks.scale.astype(np.float16)):
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data.tobytes(), np.uint8)
        model.buffers.append(buffer)
    return len(model.buffers) - 2, len(model.buffers) - 1


def _scales(tensor: Any, shape: tuple[int, int], buffer: int) -> Any:
    scales = schema.TensorT()
    scales.name, scales.buffer = tensor.name + b"/scales", buffer
    scales.type = schema.TensorType.FLOAT16
    scales.shape = np.array(shape, np.int32)
    return scales
