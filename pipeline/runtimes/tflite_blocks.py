"""Int4 weights in blocks of inputs with a scale each, in a parsed .tflite file.

A blockwise tensor names another tensor of its subgraph that holds its scales, fp16
(`BlockwiseQuantization` of the TFLite schema).
"""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema


def details(tensor: Any) -> Any:
    """The tensor's `BlockwiseQuantizationT`; None where it has none."""
    quantization = tensor.quantization
    found = None if quantization is None else quantization.details
    return found if isinstance(found, schema.BlockwiseQuantizationT) else None


def with_scales(tensor: Any, index: int) -> Any:
    """Let a blockwise tensor, which may share its settings with others, read its scales at `index`.

    Returns:
        the tensor.
    """
    old = tensor.quantization
    tensor.quantization = schema.QuantizationParametersT()
    vars(tensor.quantization).update(vars(old))
    tensor.quantization.details = blockwise(index, details(tensor).blockSize)
    return tensor


def blockwise(scales: int, block: int) -> Any:
    """Settings of a tensor whose scales are the tensor number `scales`."""
    found = schema.BlockwiseQuantizationT()
    found.scales, found.zeroPoints, found.blockSize = scales, -1, block
    return found


def read_scales(model: Any, graph: Any, tensor: Any) -> Any:
    """The scales of a tensor, one, one a channel or one a block, as a flat array; None without."""
    if (blocks := details(tensor)) is not None:
        buffer = model.buffers[graph.tensors[blocks.scales].buffer]
        return np.frombuffer(bytes(buffer.data), np.float16).astype(np.float32)
    return None if tensor.quantization is None else tensor.quantization.scale
