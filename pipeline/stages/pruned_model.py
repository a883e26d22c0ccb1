"""Builds a classifier whose attention heads were pruned; a copy travels with its checkpoint.

transformers derives the size of a head from their number (hidden_size / num_attention_heads), so
that no configuration says 8 heads of 64 in a model 768 wide. Such a checkpoint says in its
configuration what was cut (`edgebert_pruned`), and this file builds the model with those shapes:

    AutoModelForSequenceClassification.from_pretrained(FOLDER, trust_remote_code=True)

It needs torch and transformers alone.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transformers
from torch import nn

FIELD = "edgebert_pruned"  # of config.json: {"heads": before pruning, "cuts": [[path, axis], ...]}
# What attention modules call their number of heads, and their number times the size of one.
COUNTS = ("num_attention_heads", "n_heads", "all_head_size")


class PrunedClassifier:
    """What `auto_map` of the checkpoint names; it takes the place of a model class."""

    @classmethod
    def from_pretrained(cls, folder: Any, *args: Any, config: Any, **kwargs: Any) -> Any:
        """The model with its weights, as `PreTrainedModel.from_pretrained` gives it."""
        return pruned_class(config).from_pretrained(folder, *args, config=config, **kwargs)

    @classmethod
    def _from_config(cls, config: Any, **kwargs: Any) -> Any:
        return pruned_class(config)._from_config(config, **kwargs)

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = None) -> None:
        """Nothing to do: the classes of `pruned_class` are those of transformers."""


def pruned_class(config: Any) -> Any:
    """The model class of a configuration, which shrinks its attention once it is built.

    Args:
        config: a configuration with `architectures` and, where heads were pruned, `FIELD`.
    """
    base: Any = getattr(transformers, config.architectures[0])
    if not hasattr(config, FIELD):
        return base

    class Pruned(base):
        def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
            left, record = config.num_attention_heads, getattr(config, FIELD)
            config.num_attention_heads = record["heads"]
            super().__init__(config, *args, **kwargs)
            config.num_attention_heads = left
            shrink(self, left, record["heads"], record["cuts"])

        def save_pretrained(self, folder: Any, *args: Any, **kwargs: Any) -> None:
            super().save_pretrained(folder, *args, **kwargs)
            shutil.copyfile(__file__, Path(folder) / "pruned_model.py")

    Pruned.__name__, Pruned.__module__ = base.__name__, base.__module__
    return Pruned


def shrink(model: nn.Module, left: int, before: int, cuts: list[tuple[str, int]]) -> None:
    """Give each matrix that has parts for the heads the shape with `left` of `before` heads."""
    for pattern, axis in cuts:
        for owner, name in _find(model, pattern.split(".")):
            target = getattr(owner, name, None)
            if isinstance(target, nn.Module):
                _shrink_parameter(target, "weight", axis, left, before)
                if axis == 0 and getattr(target, "bias", None) is not None:
                    _shrink_parameter(target, "bias", 0, left, before)
            elif target is not None:
                _shrink_parameter(owner, name, axis, left, before)
    for module in model.modules():
        for name in COUNTS:
            if isinstance(getattr(module, name, None), int):
                setattr(module, name, getattr(module, name) * left // before)


def _find(root: nn.Module, path: list[str]) -> Iterator[tuple[nn.Module, str]]:
    """Owner and last name of a path; `*` is every module of a list."""
    first, *rest = path
    if not rest:
        yield root, first
    elif first == "*":
        for child in root.children():
            yield from _find(child, rest)
    elif getattr(root, first, None) is not None:
        yield from _find(getattr(root, first), rest)


def _shrink_parameter(module: nn.Module, name: str, axis: int, left: int, before: int) -> None:
    old = getattr(module, name)
    size = old.shape[axis] * left // before
    new = old.detach().narrow(axis, 0, size).clone()
    setattr(module, name, nn.Parameter(new, requires_grad=old.requires_grad))
    for names in (("out_features", "in_features"), ("num_embeddings", "embedding_dim")):
        if name == "weight" and hasattr(module, names[0]):
            setattr(module, names[axis], size)
    if name == "weight" and axis == 0 and hasattr(module, "out_channels"):
        module.out_channels = size
