"""Record what the query, key and value projections of a model give."""

from typing import Any

import torch
from torch import nn

from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.targets.errors import InputError

# What transformers calls them, in one family or another.
_NAMES = (
    ("query", "key", "value"),
    ("query_proj", "key_proj", "value_proj"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
)


class Projections:
    """Queries, keys and values of each layer, of the last forward pass.

    Args:
        model: a loaded classifier.
        checkpoint: what it was loaded from.

    Attributes:
        states: for each of the three, [batch, seq, width] of each layer, in the order of the depth;
            a layer that is applied several times has an entry for each time.

    Raises:
        InputError: the model has no separate projections.
    """

    def __init__(self, model: nn.Module, checkpoint: Checkpoint) -> None:
        self.states: tuple[list[torch.Tensor], ...] = ([], [], [])
        self._done: set[nn.Module] = set()  # projections of the layer that is running
        layers: Any = dotted(model, checkpoint.family.layer_path)
        linear = {
            module: name.rpartition(".")[2]
            for layer in layers
            for name, module in layer.named_modules()
            if isinstance(module, nn.Linear)
        }
        for names in _NAMES:
            if set(names) <= set(linear.values()):
                break
        else:
            raise InputError(
                f"{checkpoint.family.model_type} has no separate query, key and value projections",
                str(checkpoint.path),
                "set relation_weight=0",
            )
        for layer in {id(layer): layer for layer in layers}.values():
            layer.register_forward_pre_hook(self._start_layer)
        for module, name in linear.items():
            if name in names:
                module.register_forward_hook(self._recorder(names.index(name)))

    def clear(self) -> None:
        """Forget the last forward pass."""
        for states in self.states:
            states.clear()

    def _start_layer(self, layer: nn.Module, inputs: Any) -> None:
        self._done.clear()

    def _recorder(self, kind: int) -> Any:
        def record(module: nn.Module, inputs: Any, output: torch.Tensor) -> None:
            if module not in self._done:  # DeBERTa projects positions too, after the tokens
                self._done.add(module)
                self.states[kind].append(output)

        return record
