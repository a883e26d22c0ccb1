"""What is done to an exported ONNX graph: fold constants, store each weight once, name it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

# Opset -> IR version that came with it (https://onnx.ai/onnx/repo-docs/Versioning.html).
IR_OF_OPSET = {15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
INLINE_LIMIT = 1_900_000_000  # bytes; a protobuf file ends at 2 GB


def fold_constants(source: Path, target: Path) -> None:
    """Compute what does not depend on the inputs, ALBERT's transposed weights above all."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    if total_bytes(source) > INLINE_LIMIT:
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", f"{target.name}.data"
        )
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def total_bytes(file: Path) -> int:
    """Bytes of an ONNX file with its external data."""
    data = file.with_name(f"{file.name}.data")
    return file.stat().st_size + (data.stat().st_size if data.exists() else 0)


def store_once(model: Any) -> None:
    """Keep one of several identical initializers, and none that nothing reads."""
    first: dict[tuple[Any, tuple[int, ...], bytes], str] = {}
    renamed: dict[str, str] = {}
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        renamed[tensor.name] = first.setdefault(_content(array), tensor.name)
    for node in model.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    used = {name for node in model.graph.node for name in node.input}
    used |= {output.name for output in model.graph.output}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def name_initializers(model: Any, parameters: Mapping[str, Any]) -> None:
    """Call a weight what the checkpoint calls it, `.T` where it is transposed; number the rest.

    Args:
        model: the graph.
        parameters: name -> array of the checkpoint.
    """
    names: dict[tuple[Any, tuple[int, ...], bytes], str] = {}
    for name, array in parameters.items():
        names.setdefault(_content(array), name)
        if array.ndim == 2:
            names.setdefault(_content(array.T), f"{name}.T")
    renamed: dict[str, str] = {}
    for index, tensor in enumerate(model.graph.initializer):
        array = onnx.numpy_helper.to_array(tensor)
        name = names.get(_content(array), f"constant_{index}")
        renamed[tensor.name] = tensor.name = name
    for node in model.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]


def strip(model: Any) -> None:
    """Drop what is about the machine that exported: stack traces, paths, unused domains."""
    graph = model.graph
    for item in (model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        item.ClearField("metadata_props")
        item.ClearField("doc_string")
    del graph.value_info[:]
    used = {node.domain for node in graph.node} | {""}
    kept = [opset for opset in model.opset_import if opset.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    model.producer_name, model.producer_version = "edgebert", ""


def save(model: Any, file: Path) -> None:
    """Write one file; beyond 2 GB the weights go into `<file>.data` beside it."""
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size > INLINE_LIMIT:
        onnx.save(model, file, save_as_external_data=True, location=f"{file.name}.data")
    else:
        onnx.save(model, file)


def _content(array: Any) -> tuple[Any, tuple[int, ...], bytes]:
    return array.dtype, array.shape, hashlib.sha256(array.tobytes()).digest()
