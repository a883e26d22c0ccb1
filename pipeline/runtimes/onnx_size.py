"""ONNX models over 2 GB, which protobuf cannot write in one piece: weights beside the graph."""

import tempfile
from pathlib import Path

import onnx
import onnxruntime
from onnx import helper

INLINE_LIMIT = 1_900_000_000  # bytes; a protobuf message ends at 2 GB
SMALL = 1024  # bytes of a tensor whose values, such as a shape's, decide other shapes


def weight_bytes(proto: onnx.ModelProto) -> int:
    """Bytes of the stored tensors."""
    return sum(len(tensor.raw_data) for tensor in proto.graph.initializer)


def save_onnx(proto: onnx.ModelProto, file: Path) -> None:
    """Write one file; beyond `INLINE_LIMIT` the weights go into `<file>.data` beside it."""
    data = file.with_name(f"{file.name}.data")
    data.unlink(missing_ok=True)  # onnx appends to one that is there
    if weight_bytes(proto) > INLINE_LIMIT:
        onnx.save(proto, file, save_as_external_data=True, location=data.name)
    else:
        onnx.save(proto, file)


def without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with its large tensors declared as inputs, for tools that need no values."""
    light = helper.make_model(onnx.GraphProto(name=proto.graph.name), ir_version=proto.ir_version)
    del light.opset_import[:]
    light.opset_import.extend(proto.opset_import)
    graph, of = light.graph, proto.graph
    graph.node.extend(of.node)
    graph.input.extend(of.input)
    graph.output.extend(of.output)
    graph.value_info.extend(of.value_info)
    for tensor in of.initializer:
        if len(tensor.raw_data) > SMALL:
            declared = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            graph.input.append(declared)
        else:
            graph.initializer.append(tensor)
    return light


def restore_weights(light: onnx.ModelProto, proto: onnx.ModelProto) -> None:
    """Undo `without_weights` on what a tool made of its result; in place."""
    declared = {value.name for value in proto.graph.input}
    stored = {tensor.name for tensor in light.graph.initializer}
    inputs = [value for value in light.graph.input if value.name in declared]
    del light.graph.input[:]
    light.graph.input.extend(inputs)
    light.graph.initializer.extend(t for t in proto.graph.initializer if t.name not in stored)


def load_session(
    proto: onnx.ModelProto, options: onnxruntime.SessionOptions
) -> onnxruntime.InferenceSession:
    """Onnxruntime's session of a graph in memory, of whatever size."""
    providers = ["CPUExecutionProvider"]
    if weight_bytes(proto) <= INLINE_LIMIT:
        return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=providers)
    with tempfile.TemporaryDirectory() as folder:
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)  # saving turns the tensors of what is saved into references
        file = Path(folder) / "model.onnx"
        save_onnx(copy, file)
        return onnxruntime.InferenceSession(str(file), options, providers=providers)
