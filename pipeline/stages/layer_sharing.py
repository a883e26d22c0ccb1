"""Pull the layer groups of an ALBERT together until they are one."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, TrainerCallback

from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.stages.load import count_parameters


class ShareLayers(TrainerCallback):
    """Pulls layer groups together while they train.

    After each optimizer step every group moves towards the mean of all, so far that the distances
    shrink linearly to zero over the first `share` of the steps; from then on the groups are equal
    and stay so. Starting from the teacher's own layers this keeps what they know, which a copy of
    one layer does not.

    Args:
        groups: modules of one shape.
        share: 0 (equal from the first step on) to 1 (at the last).
    """

    def __init__(self, groups: Sequence[nn.Module], share: float) -> None:
        self.share = share
        self.tensors = list(zip(*(group.parameters() for group in groups), strict=True))

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Pull once."""
        remaining = self.share * state.max_steps - state.global_step
        pull_together(self.tensors, strength=1 / max(1.0, remaining))


def pull_together(tensors: Sequence[tuple[torch.Tensor, ...]], strength: float) -> None:
    """Move the tensors of each tuple by `strength` (0..1) towards their mean, in place."""
    with torch.no_grad():
        for copies in tensors:
            mean = torch.stack(copies).mean(dim=0)
            for copy in copies:
                copy.lerp_(mean, strength)


def keep_one_group(model: Any, layers: Any) -> None:
    """Leave the first of equal layer groups, and a configuration that says so."""
    del layers[1:]
    model.config.num_hidden_groups = 1


def final_parameters(checkpoint: Checkpoint) -> int:
    """Parameters of a checkpoint when its layer groups are one; what layers share counts once."""
    groups = int(getattr(checkpoint.config, "num_hidden_groups", 1))
    if groups == 1:
        return count_parameters(checkpoint)
    config = copy.deepcopy(checkpoint.config)
    config.num_hidden_groups = 1
    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())
