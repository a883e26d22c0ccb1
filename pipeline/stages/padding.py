"""Padding that widens no range: what a dynamic int8 scheme gives must not depend on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from edgebert.pipeline.artifact import dotted
from edgebert.pipeline.stages.wrapper import ExportModule


@contextmanager
def padding_as_first_token(module: ExportModule) -> Iterator[None]:
    """Let padding start from the embedding of its row's first token, while a module is traced.

    A dynamic scheme scales the activations of a product by the largest of them, padding included,
    so that a text scored differently by its padding. No token attends to padding, and a position
    that starts as the first token and attends to the same tokens stays equal to it in every layer:
    the ranges are those of the text alone. A row of nothing but padding is left as it is.

    Does nothing for families that mix neighbors, and for token classifiers, whose logits of padding
    would no longer be those of PyTorch.
    """
    family, config = module.family, module.model.config
    tags = any("TokenClassification" in name for name in config.architectures or [])
    if tags or not family.padding_is_apart(config):
        yield
        return
    masks: list[torch.Tensor] = []

    def see(_: Any, args: Any, inputs: dict[str, torch.Tensor]) -> None:
        masks[:] = [inputs["attention_mask"]]

    def fill(_: Any, args: Any, hidden: torch.Tensor) -> torch.Tensor:
        real = masks[0][:, :, None]  # [batch, seq, 1]
        own = real + 1 - real.amax(dim=1, keepdim=True)
        return torch.where(own > 0, hidden, hidden[:, :1])

    embeddings = dotted(module.model, family.embedding_path.rpartition(".")[0])
    hooks = [
        module.register_forward_pre_hook(see, with_kwargs=True),
        embeddings.register_forward_hook(fill),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
