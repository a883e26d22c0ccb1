"""What is done to an exported ONNX graph: fold constants, store each weight once, name it."""

import hashlib
import math
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from edgebert.pipeline.runtimes.onnx_size import without_weights

# Opset -> IR version that came with it (https://onnx.ai/onnx/repo-docs/Versioning.html).
IR_OF_OPSET = {15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}


def fold_constants(source: Path, target: Path) -> Any:
    """Compute what does not depend on the inputs, ALBERT's transposed weights above all.

    Returns:
        the graph, with its weights, which onnxruntime left in `target`.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    if source.with_name(f"{source.name}.data").exists():
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", f"{target.name}.data"
        )
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    folded = onnx.load(target)
    for node in folded.graph.node:
        # Written at its default where weights are external; opsets below 18 do not know it.
        kept = [a for a in node.attribute if (a.name, a.i) != ("noop_with_empty_axes", 0)]
        del node.attribute[:]
        node.attribute.extend(kept)
    return folded


def copy_dimensions(model: Any) -> None:
    """Let a Reshape copy the dimensions that it keeps (0), not look them up; in place."""
    inferred = onnx.shape_inference.infer_shapes(without_weights(model)).graph
    shapes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*inferred.value_info, *inferred.input)
    }
    producers = {node.output[0]: node for node in model.graph.node}
    stored = {tensor.name: tensor for tensor in model.graph.initializer}

    def sizes(name: str) -> list[int | str]:
        """The elements of a shape: numbers, names of dimensions, or "" where unknown."""
        if name in stored:
            return [int(size) for size in onnx.numpy_helper.to_array(stored[name]).reshape(-1)]
        node = producers.get(name)
        if node is not None and node.op_type == "Concat":
            return [size for part in node.input for size in sizes(part)]
        if node is not None and node.op_type == "Shape":
            ends = {attribute.name: attribute.i for attribute in node.attribute}
            return shapes.get(node.input[0], [])[ends.get("start", 0) : ends.get("end")]
        return [""]

    for index, node in enumerate(model.graph.node):
        if node.op_type != "Reshape" or node.input[1] in stored:
            continue
        given, wanted = shapes.get(node.input[0], []), sizes(node.input[1])
        pairs = zip(given, wanted, strict=False)
        kept = [*takewhile(lambda pair: pair[0] == pair[1] != "", pairs)]
        fixed = [size for size in given[len(kept) :] if isinstance(size, int)]
        rest = [size for size in wanted[len(kept) :] if isinstance(size, int)]
        if len(kept) + len(fixed) < len(given) or len(kept) + len(rest) < len(wanted):
            continue
        if -1 in rest:  # beside a 0 it is refused in the body of a Loop, whose rank is unknown
            rest[rest.index(-1)] = math.prod(fixed) // -math.prod(rest)
        value = np.array([*(0 for _ in kept), *rest], np.int64)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, f"shape_{index}"))
        node.input[1] = f"shape_{index}"
        del node.attribute[:]  # allowzero, which would take a 0 for a size
    used = {name for node in model.graph.node for name in node.input}
    while unused := [n for n in model.graph.node if not used & set(n.output) and _inner(model, n)]:
        for node in unused:
            model.graph.node.remove(node)
        used = {name for node in model.graph.node for name in node.input}


def _inner(model: Any, node: Any) -> bool:
    return not {output.name for output in model.graph.output} & set(node.output)


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
        if array.ndim > 1:  # XLNet's parameters have a dimension for heads and one for their size
            matrix, weight = array.reshape(len(array), -1), f"{name.removesuffix('.weight')}.weight"
            names.setdefault(_content(matrix), weight)
            names.setdefault(_content(matrix.T), f"{weight}.T")
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


def _content(array: Any) -> tuple[Any, tuple[int, ...], bytes]:
    return array.dtype, array.shape, hashlib.sha256(array.tobytes()).digest()
