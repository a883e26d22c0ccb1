"""SmoothQuant (Xiao et al. 2022, arXiv:2211.10438): move the range of activations into the weights.

x W = (x / s) (s W) for any positive scale s of the channels. With s large where x is large, one
scale for all of x loses little. It comes before a scheme that quantizes x. NNCF's own skips weights
that several layers share, which is every weight of an ALBERT; here such layers share s as well, so
that the weight is still stored once.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from edgebert.pipeline.runtimes.onnx_size import load_session
from edgebert.pipeline.stages.onnx_weights import (
    Array,
    Feed,
    replace_nodes,
    store,
    stored_matmuls,
    weight,
)


@dataclass(frozen=True)
class _Group:
    """MatMuls that must take the same scale: they read one activation or one weight."""

    activations: frozenset[str]
    weights: frozenset[str]


def _groups(proto: onnx.ModelProto) -> list[_Group]:
    groups: list[_Group] = []
    for node in stored_matmuls(proto):
        merged = _Group(frozenset({node.input[0]}), frozenset({node.input[1]}))
        for other in [*groups]:
            if other.activations & merged.activations or other.weights & merged.weights:
                groups.remove(other)
                merged = _Group(
                    merged.activations | other.activations, merged.weights | other.weights
                )
        groups.append(merged)
    return groups


def channel_maxima(
    proto: onnx.ModelProto, names: Iterable[str], feeds: Iterable[Feed]
) -> dict[str, Array]:
    """Largest absolute value of every channel (last dimension) over the calibration rows."""
    probe = onnx.ModelProto()
    probe.CopyFrom(proto)
    wanted = sorted(set(names))
    for name in wanted:
        probe.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = load_session(probe, options)
    maxima: dict[str, Array] = {}
    for feed in feeds:
        for name, value in zip(wanted, session.run(wanted, feed), strict=True):
            largest = np.abs(value.reshape(-1, value.shape[-1])).max(axis=0)
            maxima[name] = np.maximum(maxima.get(name, largest), largest)
    return maxima


def smooth(
    proto: onnx.ModelProto, feeds: Iterable[Feed], strength: float, producer: str = ""
) -> None:
    """Smooth the inputs of the MatMuls with a stored weight; in place.

    Args:
        proto: the fp32 graph.
        feeds: calibration inputs by name.
        strength: the paper's alpha, from 0 (weights stay) to 1 (activations become uniform).
        producer: smooth only what operators of this type give, and what shares weights with it.
    """
    given = {node.output[0] for node in proto.graph.node if producer in ("", node.op_type)}
    groups = [group for group in _groups(proto) if group.activations & given]
    if not groups:  # MobileBERT has no LayerNormalization
        return
    names = [name for group in groups for name in group.activations]
    maxima = channel_maxima(proto, names, feeds)
    scaled: dict[str, str] = {}
    nodes_by_input: dict[str, onnx.NodeProto] = {}
    for index, group in enumerate(groups):
        matrices = {name: weight(proto, name) for name in sorted(group.weights)}
        x_range = np.max([maxima[name] for name in group.activations], axis=0)
        w_range = np.max(
            [np.abs(m).max(axis=1) for m in matrices.values() if m is not None], axis=0
        )
        # A channel that calibration never saw moving, or that no weight reads, stays as it is.
        seen = (x_range > 1e-6) & (w_range > 1e-6)
        ratio = np.where(seen, x_range, 1) ** strength / np.where(seen, w_range, 1) ** (
            1 - strength
        )
        s = np.where(seen, np.clip(ratio, 1e-4, 1e4), 1).astype(np.float32)
        for name, matrix in matrices.items():
            if matrix is not None:
                scaled[name] = store(proto, f"{name}_smooth", matrix * s[:, None])
        inverse = store(proto, f"smooth_{index}", (1 / s).astype(np.float32))
        for x in sorted(group.activations):
            nodes_by_input[x] = helper.make_node(
                "Mul", [x, inverse], [f"{x}_smooth"], f"{x}_smooth"
            )
    nodes = []
    placed: Counter[str] = Counter()
    readers = {n.output[0] for n in stored_matmuls(proto) if n.input[0] in nodes_by_input}
    for node in proto.graph.node:
        if node.output[0] in readers:
            x = node.input[0]
            if not placed[x]:
                nodes.append(nodes_by_input[x])
            placed[x] += 1
            node.input[0], node.input[1] = f"{x}_smooth", scaled[node.input[1]]
        nodes.append(node)
    replace_nodes(proto, nodes)
