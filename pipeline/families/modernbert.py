"""ModernBERT (Warner et al. 2024, arXiv:2412.13663): rotary positions, local and global layers."""

from typing import TYPE_CHECKING, Any

from edgebert.pipeline.families.family import Cut, Family, Parts, additive_mask

if TYPE_CHECKING:
    from torch import nn


def _prepare(model: "nn.Module", lengths: tuple[int, ...]) -> None:
    """Give the encoder additive masks; the head keeps the binary one, for its mean pooling.

    The rotary tables are computed in one order: transformers walks a set of names, whose order
    changes from process to process and with it the exported file.
    """
    import torch

    config: Any = model.config
    window = config.local_attention // 2  # tokens to each side

    encoder: Any = model.model
    rotary = encoder.rotary_emb
    original = rotary.forward
    tables: dict[str, Any] = {}

    def in_order(hidden: Any, position_ids: Any, layer_type: str) -> Any:
        if not tables:
            for name in sorted(set(config.layer_types)):
                tables[name] = original(hidden, position_ids, name)
        return tables[layer_type]

    def masks(_: Any, args: Any, inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        tables.clear()  # of the call before
        visible = inputs["attention_mask"][:, None, None, :]  # [batch, 1, 1, key]
        position = torch.arange(visible.shape[-1])
        near = (position[:, None] - position[None, :]).abs() <= window  # [query, key]
        both = {
            "full_attention": additive_mask(visible),
            "sliding_attention": additive_mask(visible * near),
        }
        return args, {**inputs, "attention_mask": both}

    rotary.forward = in_order
    encoder.register_forward_pre_hook(masks, with_kwargs=True)


FAMILY = Family(
    model_type="modernbert",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "local_attention": 8,
        "classifier_pooling": "mean",
        "pad_token_id": 0,
        "bos_token_id": 2,
        "cls_token_id": 2,
        "eos_token_id": 3,
        "sep_token_id": 3,
    },
    layer_path="model.layers",
    embedding_path="model.embeddings.tok_embeddings",
    token_types="never",
    mask="binary",
    prepare=_prepare,
    heads=(Parts("attn", (Cut("Wqkv", blocks=3), Cut("Wo", 1))),),
    head_size_field="head_dim",
    neurons=(Parts("mlp", (Cut("Wi", blocks=2), Cut("Wo", 1))),),  # the neuron and its gate
)
