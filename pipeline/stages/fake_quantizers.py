"""NNCF's fake quantizers in a torch model, and what they have learned.

Linear layers get one for the weight (int8, symmetric, a scale a channel) and one for what they read
(uint8 with a zero point). Everything between them stays fp32, as in the static schemes. What is one
tensor has one quantizer: a weight that depths share (ALBERT), the input of query, key and value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nncf
import torch
from nncf.quantization import advanced_parameters as advanced
from nncf.torch.function_hook.nncf_graph.nncf_graph_builder import build_nncf_graph
from nncf.torch.function_hook.wrapper import get_hook_storage
from nncf.torch.quantization.layers import SymmetricQuantizer
from safetensors.torch import load_file, save_file
from torch import nn

from edgebert.pipeline.artifact import RANGES, Checkpoint
from edgebert.pipeline.runtimes.stored_tensor import layer_name
from edgebert.pipeline.stages.onnx_nncf import quiet
from edgebert.targets.errors import InputError, MachineError

Batch = dict[str, torch.Tensor]
_QUANTIZERS = ("symmetric_quantize", "asymmetric_quantize")
# Operators that move values and change none: a quantizer before them is one behind them.
_MOVES = (
    *("dropout", "reshape", "view", "transpose", "permute", "contiguous", "flatten"),
    *("squeeze", "unsqueeze", "select", "__getitem__", "to", "clone"),
)
_HOOKS = "__nncf_hooks."
# Products of two activations stay fp32, and tables are stored as int8 rows without training.
_IGNORED = ["matmul", "bmm", "baddbmm", "einsum", "embedding", "conv1d"]


@dataclass(frozen=True)
class Ranges:
    """What the quantizers of one linear layer have learned.

    Attributes:
        weight_scale: value of one step of the weight [out].
        input_scale: the same of what it reads [uses]; depths that share the layer differ.
        input_zero_point: the step, 0 to 255, that is zero [uses].
        weight_steps: largest number of steps: 127, or 63 where 7 bits are used.
    """

    weight_scale: torch.Tensor
    input_scale: torch.Tensor
    input_zero_point: torch.Tensor
    weight_steps: int


def insert_quantizers(model: nn.Module, rows: Sequence[Batch], reduce_range: bool) -> nn.Module:
    """The model with fake quantizers, whose ranges are those of `rows`.

    Args:
        model: a transformers classifier in eval mode.
        rows: inputs of batch 1.
        reduce_range: weights in 7 bits, so that x86 without VNNI cannot saturate.

    Raises:
        MachineError: NNCF's extension could not be built in time.
    """
    off = advanced.AdvancedSmoothQuantParameters(convolution=-1, matmul=-1)
    try:
        with quiet():
            model = nncf.quantize(
                model,
                nncf.Dataset(list(rows)),
                subset_size=len(rows),
                model_type=nncf.ModelType.TRANSFORMER,
                ignored_scope=nncf.IgnoredScope(types=_IGNORED, validate=False),
                advanced_parameters=advanced.AdvancedQuantizationParameters(
                    disable_bias_correction=True, smooth_quant_alphas=off
                ),
            )
    except Exception as error:
        if "ExtensionLoaderTimeout" not in type(error).__name__:
            raise
        raise MachineError(
            "NNCF's extension was not built in time",
            "a C++ compiler builds it at its first use",
            "set NNCF_EXTENSION_LOAD_TIMEOUT to more seconds, or to 0 for no limit",
        ) from error
    _share(model, rows[0])
    for quantizer in get_hook_storage(model).modules():
        if reduce_range and isinstance(quantizer, SymmetricQuantizer):  # those of the weights
            quantizer.num_bits = 7
    return model


def learned_ranges(model: nn.Module, example: Batch) -> dict[str, Ranges]:
    """Linear layer -> what its quantizers have learned; a layer without quantizers is left out."""
    graph = build_nncf_graph(model, example)
    hooks = dict(get_hook_storage(model).named_modules(remove_duplicate=False))
    weights: dict[str, Any] = {}
    inputs: dict[str, list[Any]] = {}
    for node in sorted(graph.get_all_nodes(), key=lambda node: node.node_id):
        if node.node_type != "linear":
            continue
        sources = {edge.input_port_id: edge.from_node for edge in graph.get_input_edges(node)}
        read = sources[0]
        while read.node_type in _MOVES:
            read = _source(graph, read)
        if read.node_type not in _QUANTIZERS or sources[1].node_type not in _QUANTIZERS:
            continue
        layer = layer_name(_source(graph, sources[1]).node_name)
        weights[layer] = hooks[_hook_name(graph, sources[1])]
        inputs.setdefault(layer, []).append(hooks[_hook_name(graph, read)])
    return {layer: _ranges(weight, inputs[layer]) for layer, weight in weights.items()}


def snap(weight: torch.Tensor, ranges: Ranges) -> torch.Tensor:
    """The weight [out, in] on the steps that it was trained on."""
    scale = ranges.weight_scale[:, None]
    steps = (weight / scale).round().clamp(-ranges.weight_steps, ranges.weight_steps)
    return steps * scale


def save_ranges(ranges: dict[str, Ranges], folder: Path) -> None:
    """Keep them beside the weights."""
    tensors = {}
    for layer, one in ranges.items():
        tensors[f"{layer}.weight_scale"] = one.weight_scale.contiguous()
        tensors[f"{layer}.input_scale"] = one.input_scale
        tensors[f"{layer}.input_zero_point"] = one.input_zero_point
        tensors[f"{layer}.weight_steps"] = torch.tensor(one.weight_steps)
    save_file(tensors, folder / RANGES)


def load_ranges(checkpoint: Checkpoint) -> dict[str, Ranges]:
    """The ranges that a checkpoint was trained with.

    Raises:
        InputError: it was not.
    """
    file = checkpoint.path / RANGES
    if not file.exists():
        raise InputError(
            "the model was not trained with quantizers",
            str(checkpoint.path),
            "add [quantize_aware] to the recipe, or choose another scheme",
        )
    tensors = load_file(file)
    suffix = ".weight_scale"
    layers = [name.removesuffix(suffix) for name in tensors if name.endswith(suffix)]
    return {
        layer: Ranges(
            tensors[f"{layer}.weight_scale"],
            tensors[f"{layer}.input_scale"],
            tensors[f"{layer}.input_zero_point"],
            int(tensors[f"{layer}.weight_steps"]),
        )
        for layer in layers
    }


def _share(model: nn.Module, example: Batch) -> None:
    """Let what quantizes the same tensor be one module, so that it learns one range."""
    graph, storage = build_nncf_graph(model, example), get_hook_storage(model)
    hooks = dict(storage.named_modules())
    first: dict[int, nn.Module] = {}
    for node in sorted(graph.get_all_nodes(), key=lambda node: node.node_id):
        if node.node_type in _QUANTIZERS:
            name, source = _hook_name(graph, node), _source(graph, node).node_id
            storage.set_submodule(name, first.setdefault(source, hooks[name]))


def _source(graph: Any, node: Any) -> Any:
    """What a node reads first."""
    return next(e.from_node for e in graph.get_input_edges(node) if e.input_port_id == 0)


def _hook_name(graph: Any, node: Any) -> str:
    """The quantizer behind a node: its parameters are constants of the graph."""
    names = [edge.from_node.node_name for edge in graph.get_input_edges(node)]
    parameter = next(name for name in names if name.startswith(_HOOKS))
    return str(parameter.removeprefix(_HOOKS).rpartition(".")[0])


def _ranges(weight: Any, inputs: Sequence[Any]) -> Ranges:
    _, high = weight.get_input_low_input_high()
    scales, zeros = [], []
    for quantizer in inputs:
        low, top = (float(bound.detach()) for bound in quantizer.get_input_low_input_high())
        scale = (top - low) / 255
        scales.append(scale)
        zeros.append(round(-low / scale))
    return Ranges(
        weight_scale=high.detach().clone().flatten() / weight.level_high,
        input_scale=torch.tensor(scales),
        input_zero_point=torch.tensor(zeros, dtype=torch.uint8),
        weight_steps=int(weight.level_high),
    )
