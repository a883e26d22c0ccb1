"""Change a parsed .tflite file and write it: names, equal buffers, versions, fp32 leftovers."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgebert.pipeline.runtimes.stored_tensor import LARGE
from edgebert.pipeline.runtimes.tflite_blocks import details
from edgebert.pipeline.runtimes.tflite_file import operator_name, shape_of, text_of
from edgebert.targets.errors import MachineError

ALIGNMENT = 16  # `force_align` of a buffer in the TFLite schema
MAX_BYTES = 2**31 - 1  # a flatbuffer's offsets are signed 32 bits
INT8_MAX = 127
TWIN_SHARE = 1e-3  # of the elements of two roundings of one matrix that may differ, by one step


class _Builder(flatbuffers.Builder):
    """Aligns buffers as the schema asks, and writes equal scales once.

    The generated Python code does neither. A scale and a zero point a channel take 12 bytes, and
    every signature has its own for every row of the word table.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._written: dict[tuple[str, bytes], int] = {}

    def CreateNumpyVector(self, x: Any) -> int:
        """Write a vector; of bytes there are only buffers."""
        if x.dtype == np.uint8:
            self.Prep(ALIGNMENT, x.size)
            return int(super().CreateNumpyVector(x))
        key = (x.dtype.str, x.tobytes())
        if key not in self._written:
            self._written[key] = super().CreateNumpyVector(x)
        return self._written[key]


def tidy(model: Any) -> None:
    """Shorten names and store equal buffers once, in place.

    The converter names each of thousands of tensors by the path of its torch module (hundreds of
    bytes each), and what lengths share but differs in the order of folding is stored by length.
    """
    for graph in model.subgraphs:
        for index, tensor in enumerate(graph.tensors):
            tensor.name = f"{text_of(graph.name)}/{index}".encode()
    first: dict[bytes, int] = {}
    new_index = {
        index: first.setdefault(b"" if buffer.data is None else bytes(buffer.data), index)
        for index, buffer in enumerate(model.buffers)
    }
    holders = [
        *(tensor for graph in model.subgraphs for tensor in graph.tensors),
        *(model.metadata or []),
    ]
    kept = sorted({new_index[holder.buffer] for holder in holders} | {0})
    position = {index: place for place, index in enumerate(kept)}
    model.buffers = [model.buffers[index] for index in kept]
    for holder in holders:
        holder.buffer = position[new_index[holder.buffer]]


def merge_rounding_twins(model: Any) -> None:
    """Point int8 weights that differ by rounding alone to one buffer, in place.

    A matrix that several depths share is quantized once for each. Its scales can differ in the last
    bit from depth to depth, and then some elements halfway between two steps differ by one step.
    """
    distinct: dict[tuple[int, ...], dict[int, Any]] = {}
    twin: dict[int, int] = {}
    for tensor in (tensor for graph in model.subgraphs for tensor in graph.tensors):
        data = model.buffers[tensor.buffer].data
        if tensor.type != schema.TensorType.INT8 or data is None or len(data) <= LARGE:
            continue
        if tensor.buffer not in twin:
            values = np.frombuffer(bytes(data), np.int8).astype(np.int16)
            known = distinct.setdefault(shape_of(tensor), {})
            twin[tensor.buffer] = next(
                (index for index, other in known.items() if _differ_by_rounding(values, other)),
                tensor.buffer,
            )
            if twin[tensor.buffer] == tensor.buffer:
                known[tensor.buffer] = values
        tensor.buffer = twin[tensor.buffer]


def _differ_by_rounding(first: Any, second: Any) -> bool:
    difference = np.abs(first - second)
    return bool(difference.max() <= 1 and difference.mean() < TWIN_SHARE)


def write_tflite(model: Any, file: Path) -> None:
    """Write a parsed model.

    Raises:
        MachineError: it is over the 2 GB a flatbuffer holds.
    """
    size = sum(len(buffer.data) for buffer in model.buffers if buffer.data is not None)
    if size > MAX_BYTES:
        raise MachineError(
            f"the model takes {size / 1e9:.1f} GB, and a .tflite file holds 2 GB",
            str(file),
            "use a smaller model",
        )
    for buffer in model.buffers:
        if buffer.data is not None:  # bytes would be written one by one
            buffer.data = np.frombuffer(bytes(buffer.data), np.uint8)
    builder = _Builder(size + (1 << 20))
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    file.write_bytes(builder.Output())


def correct_versions(model: Any) -> None:
    """Give operators on int8 weights the version that has them, in place.

    ai-edge-quantizer keeps the version of the fp32 operator, so that an older runtime takes the
    file, reads the first scale of a per-channel weight for all of them, and is silently wrong.
    Source of the versions: `GetBuiltinOperatorVersion` in google-ai-edge/LiteRT,
    tflite/converter/tools/versioning/op_version.cc.
    """
    for graph in model.subgraphs:
        for operator in graph.operators:
            code = model.operatorCodes[operator.opcodeIndex]
            inputs = [graph.tensors[index] for index in operator.inputs if index >= 0]
            needed = _version_for_weights(operator_name(code), inputs)
            code.version = max(int(code.version), needed)


def _version_for_weights(name: str, inputs: list[Any]) -> int:
    types = schema.TensorType
    if not inputs:
        return 1
    first, weight = inputs[0], inputs[1] if len(inputs) > 1 else inputs[0]
    hybrid = first.type == types.FLOAT32 and weight.type in (types.INT8, types.INT4)
    narrow, per_channel = weight.type == types.INT4, _is_per_channel(weight)
    match name:
        case "FULLY_CONNECTED" if hybrid and details(weight) is not None:
            return 14  # for its release: older ones read a scale a block as one a channel
        case "FULLY_CONNECTED" if hybrid:
            return 12 if per_channel else 10 if narrow else 3
        case "EMBEDDING_LOOKUP" if weight.type in (types.INT8, types.INT4):
            return 4 if per_channel or narrow else 1
        case "CONV_2D" if hybrid:
            return 5 if per_channel else 2
        case "DEPTHWISE_CONV_2D" if hybrid:
            return 6 if per_channel else 4
        case "DEQUANTIZE":
            return 6 if narrow else 5 if per_channel else 2
        case _:
            return 1


def _is_per_channel(tensor: Any) -> bool:
    scale = None if tensor.quantization is None else tensor.quantization.scale
    return scale is not None and len(scale) > 1


def store_in_int8(model: Any, kept: Collection[bytes] = ()) -> None:
    """Store the matrices over 10,000 elements that are still fp32 as int8 with one scale, in place.

    Those with the bytes of one of `kept` stay in fp32.

    They are what the quantizer does not take for weights: sinusoids, Hadamard matrices. Each gets
    a DEQUANTIZE, which runtimes compute once, when they first run.
    """
    scales: dict[int, float] = {}  # buffer -> scale
    for graph in model.subgraphs:
        for index, tensor in enumerate(list(graph.tensors)):
            if not _is_large_float(model, tensor):
                continue
            if kept and bytes(model.buffers[tensor.buffer].data) in kept:
                continue
            if tensor.buffer not in scales:
                buffer = model.buffers[tensor.buffer]
                values = np.frombuffer(bytes(buffer.data), np.float32)
                scale = float(np.abs(values).max()) / INT8_MAX or 1.0
                buffer.data = np.rint(values / scale).astype(np.int8).view(np.uint8)
                scales[tensor.buffer] = scale
            _dequantize(model, graph, index, scales[tensor.buffer])


def float_outputs(model: Any) -> None:
    """Give signatures whose output the converter left in int8 their fp32 output, in place."""
    for signature in model.signatureDefs:
        graph = model.subgraphs[signature.subgraphIndex]
        for output in signature.outputs:
            index = output.tensorIndex
            if graph.tensors[index].type != schema.TensorType.INT8:
                continue
            output.tensorIndex = _add_dequantize(model, graph, index, len(graph.operators))
            graph.outputs = [output.tensorIndex if i == index else i for i in graph.outputs]


def widen_left_operands(model: Any) -> None:
    """Dequantize int8 constants that are the left operand of a BATCH_MATMUL on fp32, in place.

    ai-edge-quantizer writes them (XLNet, whose weights come first); the kernel takes int8 only on
    the right.
    """
    types = schema.TensorType
    for graph in model.subgraphs:
        widened: dict[int, int] = {}  # int8 tensor -> its fp32 one
        for operator in list(graph.operators):
            if operator_name(model.operatorCodes[operator.opcodeIndex]) != "BATCH_MATMUL":
                continue
            left, right = (graph.tensors[index].type for index in operator.inputs)
            if (left, right) != (types.INT8, types.FLOAT32):
                continue
            index = operator.inputs[0]
            if index not in widened:
                widened[index] = _add_dequantize(model, graph, index, 0)
            operator.inputs = [widened[index], operator.inputs[1]]


def _is_large_float(model: Any, tensor: Any) -> bool:
    shape = shape_of(tensor)
    return (
        tensor.type == schema.TensorType.FLOAT32
        and model.buffers[tensor.buffer].data is not None
        and int(np.prod(shape)) > LARGE
        and sum(size > 1 for size in shape) > 1
    )


def _dequantize(model: Any, graph: Any, index: int, scale: float) -> None:
    """Make the constant an int8 one, and let everything that read it read its DEQUANTIZE."""
    constant = graph.tensors[index]
    constant.type = schema.TensorType.INT8
    constant.quantization = schema.QuantizationParametersT()
    constant.quantization.scale = np.array([scale], np.float32)
    constant.quantization.zeroPoint = np.array([0], np.int64)
    readers = list(graph.operators)
    result = _add_dequantize(model, graph, index, 0)
    for operator in readers:
        operator.inputs = [result if i == index else i for i in operator.inputs]


def _add_dequantize(model: Any, graph: Any, index: int, place: int) -> int:
    """Add a DEQUANTIZE of a tensor before the operator at `place`; the index of its result."""
    source, result = graph.tensors[index], schema.TensorT()
    result.name = f"{text_of(source.name)}/float".encode()
    result.shape, result.type, result.buffer = source.shape, schema.TensorType.FLOAT32, 0
    graph.tensors.append(result)
    operator = schema.OperatorT()
    operator.opcodeIndex = _dequantize_code(model)
    operator.inputs, operator.outputs = [index], [len(graph.tensors) - 1]
    graph.operators.insert(place, operator)
    return len(graph.tensors) - 1


def _dequantize_code(model: Any) -> int:
    for index, code in enumerate(model.operatorCodes):
        if operator_name(code) == "DEQUANTIZE":
            return index
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DEQUANTIZE
    code.version = 2
    model.operatorCodes.append(code)
    return len(model.operatorCodes) - 1
