"""Mixed precision in a .tflite file: some layers quantized, the others as in the fp32 file.

With dynamic ranges the quantizer changes the stored tensors of a file and nothing else: the runtime
sees by the type of a weight how to compute. A layer is one buffer, whatever reads it.
"""

from collections.abc import Collection
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.runtimes.stored_tensor import LARGE, Layer, layer_name
from edgebert.pipeline.runtimes.tflite_file import operator_name
from edgebert.pipeline.schemes import SchemeError
from edgebert.pipeline.stages.load import load_model

FLOAT_BYTES = 4
# Operators with weights, and which input the weights are.
WEIGHTS = {"FULLY_CONNECTED": 1, "EMBEDDING_LOOKUP": 1, "GATHER": 0}


def find_layers(model: Any, checkpoint: Checkpoint) -> dict[int, Layer]:
    """Buffer -> layer of an fp32 file, by the checkpoint's names for the same numbers.

    Args:
        model: the parsed fp32 file.
        checkpoint: what it was exported from.
    """
    graph = model.subgraphs[0]  # every length has the same operators
    uses: dict[int, int] = {}
    for operator in graph.operators:
        kind = operator_name(model.operatorCodes[operator.opcodeIndex])
        if kind in WEIGHTS:
            tensor = graph.tensors[operator.inputs[WEIGHTS[kind]]]
            data = model.buffers[tensor.buffer].data
            if tensor.type != schema.TensorType.FLOAT32 or data is None:
                continue
            if kind == "FULLY_CONNECTED" or len(data) > FLOAT_BYTES * LARGE:
                uses[tensor.buffer] = uses.get(tensor.buffer, 0) + 1
    names: dict[bytes, str] = {}
    for name, parameter in load_model(checkpoint).state_dict().items():
        names.setdefault(parameter.numpy().tobytes(), layer_name(name))
    found = {}
    for buffer, count in uses.items():
        data = bytes(model.buffers[buffer].data)
        if data in names:
            found[buffer] = Layer(names[data], len(data) // FLOAT_BYTES, count)
    return found


def restore(fp32: Any, quantized: Any, buffers: Collection[int]) -> None:
    """Put stored tensors of a quantized file back to fp32, in place.

    Args:
        fp32: the parsed fp32 file.
        quantized: the same file with every layer quantized.
        buffers: of the fp32 file; what of them is no constant stays as it is.

    Raises:
        SchemeError: quantizing changed more than the stored tensors.
    """
    restored: dict[int, int] = {}
    for before, after in zip(fp32.subgraphs, quantized.subgraphs, strict=True):
        sizes = [(len(graph.tensors), len(graph.operators)) for graph in (before, after)]
        if sizes[0] != sizes[1]:
            raise SchemeError("this scheme adds operators, and can leave no layer in fp32")
        for ours, theirs in zip(before.tensors, after.tensors, strict=True):
            if ours.buffer not in buffers or ours.type == theirs.type:
                continue
            if ours.buffer not in restored:
                buffer = schema.BufferT()
                buffer.data = fp32.buffers[ours.buffer].data
                restored[ours.buffer] = len(quantized.buffers)
                quantized.buffers.append(buffer)
            theirs.type, theirs.quantization = ours.type, ours.quantization
            theirs.buffer = restored[ours.buffer]
