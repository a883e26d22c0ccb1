"""The module that both exporters export: token ids and mask in, logits out, and nothing else."""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers.activations import NewGELUActivation

from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.families import Family
from edgebert.pipeline.families.family import MASKED, additive_mask
from edgebert.pipeline.stages.load import load_model

HUGE = 1e29  # a larger number in a model is a mask constant


class SmallMaskConstants(TorchFunctionMode):
    """Replaces the mask constants of models that build their own mask (DeBERTa, XLNet).

    They write -3.4e38 or subtract 1e30, which ruins static int8 scales and overflows in fp16.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        small = tuple(
            (MASKED if a < 0 else -MASKED) if isinstance(a, float) and abs(a) > HUGE else a
            for a in args
        )
        return func(*small, **(kwargs or {}))


class ExportModule(nn.Module):
    """A classifier as a device calls it.

    Args:
        model: the transformers model, in eval mode, `attn_implementation="eager"`.
        family: its family.
    """

    def __init__(self, model: nn.Module, family: Family) -> None:
        super().__init__()
        self.model = model
        self.family = family

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits [batch, labels] (or [batch, seq, labels]) of ids, mask and types [batch, seq]."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        if self.family.mask == "additive":
            inputs["attention_mask"] = additive_mask(
                attention_mask[:, None, None, :], self.family.masked
            )
            return self.model(**inputs).logits
        inputs["attention_mask"] = attention_mask.float()
        with SmallMaskConstants():
            return self.model(**inputs).logits


def export_module(model: Any, family: Family, lengths: tuple[int, ...] = ()) -> ExportModule:
    """A loaded classifier, changed in place for export; `lengths` as in `Family.prepare`."""
    family.prepare(model, lengths)
    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, NewGELUActivation):  # written out, where the formats have it
                setattr(parent, name, nn.GELU(approximate="tanh"))
    module = ExportModule(model, family)
    module.eval()
    return module


def load_export_module(checkpoint: Checkpoint, lengths: tuple[int, ...] = ()) -> ExportModule:
    """The checkpoint's classifier, ready to export; `lengths` as in `Family.prepare`."""
    return export_module(load_model(checkpoint), checkpoint.family, lengths)
