"""Read an .onnx file: what it stores in which precision, its operators, the runtime it needs."""

import math
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from edgebert.pipeline.artifact import Model, ModelInfo, TensorSpec
from edgebert.pipeline.runtimes.stored_tensor import LARGE, StoredTensor, layer_name
from edgebert.targets.errors import EdgebertError

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
# Input that holds the scale, for each operator that has one.
SCALE_INPUTS = {
    "QuantizeLinear": (1,),
    "DequantizeLinear": (1,),
    "QLinearMatMul": (1, 4, 6),
    "MatMulIntegerToFloat": (2, 3),
    "MatMulNBits": (2,),
    "GatherBlockQuantized": (2,),
}
# First onnxruntime with an opset (https://onnxruntime.ai/docs/reference/compatibility.html).
OPSET_RUNTIME = {17: "1.12", 18: "1.14", 19: "1.15", 20: "1.17", 21: "1.18", 22: "1.21", 23: "1.23"}
IR_RUNTIME = {8: "1.10", 9: "1.16", 10: "1.18", 11: "1.22", 12: "1.23"}
# MatMulNBits came with 1.17 for 4 bits; its 8-bit kernels came with 1.22.
NBITS_RUNTIME = {4: "1.17", 8: "1.22"}
GATHER_BLOCKS_RUNTIME = "1.20"
UINT4_IR = 10  # the first version of the format with 4-bit types


def load_proto(file: Path) -> onnx.ModelProto:
    """The graph with its external data.

    Raises:
        EdgebertError: not an ONNX file, or its external data is missing or cut short.
    """
    try:
        proto = onnx.load(str(file))
    except Exception as error:  # protobuf, onnx and the file system each raise types of their own
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise EdgebertError(f"cannot read the ONNX file: {line}", str(file)) from error
    if not proto.graph.node:  # an empty file is a valid protobuf
        raise EdgebertError("cannot read the ONNX file: it holds no graph", str(file))
    return proto


def stored_tensors(proto: onnx.ModelProto) -> tuple[StoredTensor, ...]:
    """Every stored tensor, largest first: initializers, and the tensors of Constant nodes."""
    tensors = [*proto.graph.initializer]
    readers: dict[str, str] = {}
    packed: dict[str, tuple[str, tuple[int, ...]]] = {}
    for node in all_nodes(proto.graph):
        for name in node.input:
            readers.setdefault(name, node.op_type)
        if node.op_type == "MatMulNBits":
            packed |= _packed(node)
        tensors += [a.t for a in node.attribute if node.op_type == "Constant" and a.name == "value"]
    stored = []
    for tensor in tensors:
        plain = TensorProto.DataType.Name(tensor.data_type).lower(), tuple(tensor.dims)
        dtype, shape = packed.get(tensor.name, plain)
        raw = tensor.raw_data
        size = len(raw) if raw else numpy_helper.to_array(tensor).nbytes
        stored.append(StoredTensor(tensor.name, dtype, shape, size, readers.get(tensor.name, "")))
    return tuple(sorted(stored, key=lambda tensor: (-tensor.size_bytes, tensor.name)))


def _packed(node: onnx.NodeProto) -> dict[str, tuple[str, tuple[int, ...]]]:
    """What a MatMulNBits reads as bytes: type and shape of its weights and zero points."""
    values = {a.name: a.i for a in node.attribute}
    dtype, rows = f"uint{values['bits']}", values["N"]
    shapes = [(rows, values["K"]), (rows, -(-values["K"] // values["block_size"]))]
    read = [node.input[1], *node.input[3:4]]  # the zero points may be left out
    return {name: (dtype, shape) for name, shape in zip(read, shapes, strict=False)}


def float_matrices(proto: onnx.ModelProto, larger_than: int = LARGE) -> tuple[StoredTensor, ...]:
    """Matrices (two or more dimensions over 1) that are stored in floating point; no scales."""
    scale_names = _scale_names(proto)
    names = {TensorProto.DataType.Name(dtype).lower() for dtype in FLOATS}
    return tuple(
        tensor
        for tensor in stored_tensors(proto)
        if tensor.dtype in names
        and tensor.name not in scale_names
        and tensor.elements > larger_than
        and sum(d > 1 for d in tensor.shape) > 1
    )


def duplicates(proto: onnx.ModelProto, larger_than: int = LARGE) -> tuple[tuple[str, str], ...]:
    """Pairs (first, copy) of stored tensors with the same type, shape and bytes."""
    seen: dict[tuple[int, tuple[int, ...], bytes], str] = {}
    pairs = []
    for tensor in proto.graph.initializer:
        if math.prod(tensor.dims) > larger_than:
            value = numpy_helper.to_array(tensor).tobytes()
            key = (tensor.data_type, tuple(tensor.dims), value)
            if key in seen:
                pairs.append((seen[key], tensor.name))
            seen.setdefault(key, tensor.name)
    return tuple(pairs)


def scales(proto: onnx.ModelProto) -> dict[str, float]:
    """The largest absolute value of every stored quantization scale, by tensor name.

    A scale is known by the input it is, or by the `_scale` in its name: after MatMulInteger and
    after an int8 Gather it is the operand of a Mul.
    """
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    names = _scale_names(proto)
    return {
        name: float(np.abs(numpy_helper.to_array(stored[name]).astype(np.float64)).max())
        for name in sorted(stored)
        if name in names or name.endswith("_scale")
    }


def _scale_names(proto: onnx.ModelProto) -> set[str]:
    return {
        node.input[index]
        for node in all_nodes(proto.graph)
        for index in SCALE_INPUTS.get(node.op_type, ())
    }


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the graphs inside it (the body of a Loop)."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(attribute.g)


def operators(proto: onnx.ModelProto) -> dict[str, int]:
    """Operators of the graph with the version that its opset selects, by name."""
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    found = {}
    for node in all_nodes(proto.graph):
        if node.domain in ("", "ai.onnx"):
            schema = onnx.defs.get_schema(node.op_type, opsets[""])
            found[node.op_type] = schema.since_version
        else:
            found[node.op_type] = opsets[node.domain]
    return dict(sorted(found.items()))


def required_ir(proto: onnx.ModelProto) -> int:
    """Lowest version of the format that has the types of the stored tensors."""
    narrow = any(t.data_type == TensorProto.UINT4 for t in proto.graph.initializer)
    return UINT4_IR if narrow else 0


def minimum_runtime(proto: onnx.ModelProto) -> str:
    """Lowest onnxruntime that reads the IR version and has the opset and contributed operators."""
    opset = next(entry.version for entry in proto.opset_import if entry.domain == "")
    needed = [OPSET_RUNTIME.get(max(opset, min(OPSET_RUNTIME)), "")]
    needed.append(IR_RUNTIME.get(max(proto.ir_version, min(IR_RUNTIME)), ""))
    for node in all_nodes(proto.graph):
        if node.op_type == "MatMulNBits":
            bits = next(a.i for a in node.attribute if a.name == "bits")
            needed.append(NBITS_RUNTIME[bits])
        if node.op_type == "GatherBlockQuantized":
            needed.append(GATHER_BLOCKS_RUNTIME)
    if "" in needed:
        return ""
    return max(needed, key=lambda version: [int(part) for part in version.split(".")])


def check_int8(proto: onnx.ModelProto, where: str, fp32_layers: Collection[str] = ()) -> None:
    """Hold an int8 artifact to what it promises.

    Args:
        proto: the quantized graph.
        where: the file or stage that an error names.
        fp32_layers: layers that may be in fp32.

    Raises:
        EdgebertError: a matrix over `LARGE` elements is stored in floating point or twice, or a
            scale is not finite and below 1e4 (a mask constant entered the calibration).
    """
    if left := [t for t in float_matrices(proto) if layer_name(t.name) not in fp32_layers]:
        names = ", ".join(f"{t.name} {list(t.shape)}" for t in left[:4])
        raise EdgebertError(
            f"{len(left)} matrices are still stored in {left[0].dtype}: {names}", where
        )
    if copies := duplicates(proto):
        names = ", ".join(f"{copy} (as {first})" for first, copy in copies[:4])
        raise EdgebertError(f"{len(copies)} matrices are stored twice: {names}", where)
    if bad := [name for name, value in scales(proto).items() if not value < 1e4]:
        raise EdgebertError(f"quantization scales out of range: {', '.join(bad[:4])}", where)


def _specs(values: list[onnx.ValueInfoProto]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(
            name=value.name,
            dtype=np.dtype(
                onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            ).name,
            shape=tuple(d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim),
        )
        for value in values
    )


def describe(folder: Path, scheme: str, max_length: int) -> Model:
    """Write model.json for the model.onnx that a stage left in `folder`."""
    proto = load_proto(folder / "model.onnx")
    info = ModelInfo(
        format="onnx",
        scheme=scheme,
        inputs=_specs(list(proto.graph.input)),
        outputs=_specs(list(proto.graph.output)),
        max_length=max_length,
        operators=operators(proto),
        opset=next(entry.version for entry in proto.opset_import if entry.domain == ""),
        ir_version=proto.ir_version,
        minimum_runtime=f"onnxruntime {minimum_runtime(proto)}",
    )
    return Model.write_info(folder, info)
