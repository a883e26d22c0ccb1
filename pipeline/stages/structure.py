"""Where the prunable parts of a loaded model are: heads and neurons, layer by layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from edgebert.pipeline.artifact import dotted
from edgebert.pipeline.families.family import Cut, Family, Parts

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Slicing:
    """How one tensor is made of parts.

    Attributes:
        name: of the tensor in the model's state.
        axis: the axis of the parts.
        blocks: how often all parts follow each other along it.
    """

    name: str
    axis: int
    blocks: int = 1

    def parts(self, tensor: torch.Tensor, count: int) -> torch.Tensor:
        """The tensor as [parts, numbers of one]."""
        rows = tensor.movedim(self.axis, 0).reshape(self.blocks, count, -1)
        return rows.transpose(0, 1).reshape(count, -1)

    def keep(self, tensor: torch.Tensor, count: int, kept: Sequence[int]) -> torch.Tensor:
        """The tensor without the parts that are not in `kept`."""
        rows = torch.arange(tensor.shape[self.axis]).reshape(self.blocks, count, -1)
        return tensor.index_select(self.axis, rows[:, list(kept)].flatten())


@dataclass(frozen=True)
class Unit:
    """The heads of one layer, or the neurons of one feed-forward network.

    Attributes:
        count: number of parts.
        slicings: the tensors whose parts are pruned together.
        reader: the linear module that reads what the parts give, its slicing the last.
    """

    count: int
    slicings: tuple[Slicing, ...]
    reader: nn.Module

    def fits(self, tensors: Tensors) -> bool:
        """True where every tensor is made of that many parts."""
        return all(
            tensors[each.name].ndim > each.axis
            and tensors[each.name].shape[each.axis] % (each.blocks * self.count) == 0
            for each in self.slicings
        )


def find_units(model: nn.Module, family: Family, parts: Sequence[Parts], count: int) -> list[Unit]:
    """The units of a model, of `count` parts each; what layers share is there once."""
    layers: Any = dotted(model, family.layer_path)
    names = {id(module): name for name, module in model.named_modules()}
    units = []
    for layer in layers:
        for group in parts:
            for module in _walk(layer, group.path.split(".") if group.path else []):
                prefix = names[id(module)]
                found = [s for cut in group.cuts for s in find_slicings(module, prefix, cut)]
                units.append(Unit(count, tuple(found), dotted(module, group.cuts[-1].path)))
    return units


def find_slicings(module: nn.Module, prefix: str, cut: Cut) -> list[Slicing]:
    """The tensors of a cut; none where the model does not have them."""
    owner, _, last = cut.path.rpartition(".")
    target = getattr(dotted(module, owner) if owner else module, last, None)
    name = f"{prefix}.{cut.path}" if prefix else cut.path
    if target is None:
        return []
    if not isinstance(target, nn.Module):
        return [Slicing(name, cut.axis, cut.blocks)]
    slicings = [Slicing(f"{name}.weight", cut.axis, cut.blocks)]
    if cut.axis == 0 and getattr(target, "bias", None) is not None:
        slicings.insert(0, Slicing(f"{name}.bias", 0, cut.blocks))
    return slicings


def _walk(module: nn.Module, path: Sequence[str]) -> Iterator[nn.Module]:
    """The modules at a path; `*` is every module of a list."""
    if not path:
        yield module
    elif path[0] == "*":
        for child in module.children():
            yield from _walk(child, path[1:])
    elif hasattr(module, path[0]):
        yield from _walk(getattr(module, path[0]), path[1:])
