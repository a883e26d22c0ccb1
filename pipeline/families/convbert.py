"""ConvBERT (Jiang et al. 2020, arXiv:2008.02496): half of the heads are convolutions."""

from typing import TYPE_CHECKING, Any

from edgebert.pipeline.families.family import BERT_NEURONS, Cut, Family, Parts

if TYPE_CHECKING:
    from torch import Tensor, nn


def _prepare(model: "nn.Module", lengths: tuple[int, ...]) -> None:
    """Write the convolution as a sum over its kernel.

    transformers unfolds the values into one row a token, head and batch, and exporters write out
    how: with index tables and shapes that are put together at run time.
    """
    for layer in model.get_submodule(FAMILY.layer_path).children():
        attention = layer.get_submodule("attention.self")
        attention.forward = _attend(attention)


def _attend(attention: Any) -> Any:
    """The forward of a `ConvBertSelfAttention` with the same weights."""
    import torch

    heads, size = attention.num_attention_heads, attention.attention_head_size
    kernel_size = attention.conv_kernel_size
    around = kernel_size // 2  # tokens to each side

    def split(values: "Tensor") -> "Tensor":
        return values.unflatten(-1, (heads, size))  # [batch, seq, heads, size]

    def forward(hidden: "Tensor", attention_mask: "Tensor", *_: Any, **__: Any) -> Any:
        query = attention.query(hidden)
        local = attention.key_conv_attn_layer(hidden.transpose(1, 2)).transpose(1, 2)
        kernel = attention.conv_kernel_layer(local * query).unflatten(-1, (heads, kernel_size))
        kernel = kernel.softmax(dim=-1)  # [batch, seq, heads, kernel]
        values = split(attention.conv_out_layer(hidden))
        values = torch.nn.functional.pad(values, (0, 0, 0, 0, around, around))
        convolved = sum(
            values[:, place : place - 2 * around or None] * factor
            for place, factor in enumerate(kernel.split(1, dim=-1))
        )
        key, value = split(attention.key(hidden)), split(attention.value(hidden))
        scores = split(query).transpose(1, 2) @ key.permute(0, 2, 3, 1) / size**0.5
        weights = (scores + attention_mask).softmax(dim=-1)
        context = (weights @ value.transpose(1, 2)).transpose(1, 2)
        return torch.cat([context, convolved], dim=2).flatten(2), weights

    return forward


FAMILY = Family(
    model_type="convbert",
    mixes_neighbors="always",
    tiny_config={
        "embedding_size": 16,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "conv_kernel_size": 3,
        "pad_token_id": 0,
    },
    layer_path="convbert.encoder.layer",
    embedding_path="convbert.embeddings.word_embeddings",
    heads=(
        Parts(
            "attention",
            (
                Cut("self.query"),
                Cut("self.key"),
                Cut("self.value"),
                Cut("self.key_conv_attn_layer.pointwise"),
                Cut("self.key_conv_attn_layer.bias"),
                Cut("self.conv_kernel_layer", 0),
                Cut("self.conv_kernel_layer", 1),
                Cut("self.conv_out_layer"),
                Cut("output.dense", 1, blocks=2),  # attention, then convolution
            ),
        ),
    ),
    neurons=(BERT_NEURONS,),
    embedding_projection="convbert.embeddings_project",
    prepare=_prepare,
)
