"""DeBERTa v2 and v3 (He et al. 2021, arXiv:2111.09543): logarithmic position buckets."""

from typing import TYPE_CHECKING, Any

from edgebert.pipeline.families.family import BERT_NEURONS, MASKED, Cut, Family, Parts

if TYPE_CHECKING:
    from torch import Tensor, nn


def _prepare(model: "nn.Module", lengths: tuple[int, ...]) -> None:
    """Keep batch and heads apart in attention.

    transformers makes one dimension of both and parts it again, each time with a shape that is put
    together at run time, and repeats what is known of the positions for every text of the batch.
    """
    for layer in model.get_submodule(FAMILY.layer_path).children():
        attention = layer.get_submodule("attention.self")
        attention.forward = _attend(attention)


def _attend(attention: Any) -> Any:
    """The forward of a `DisentangledSelfAttention` with the same weights."""
    kinds = {"c2p", "p2c"} & {*attention.pos_att_type}

    def split(values: "Tensor") -> "Tensor":  # [..., heads, seq, size]
        return values.unflatten(-1, (attention.num_attention_heads, -1)).transpose(-3, -2)

    def forward(
        hidden: "Tensor",
        attention_mask: "Tensor",
        output_attentions: bool = False,
        query_states: "Tensor | None" = None,
        relative_pos: "Tensor | None" = None,
        rel_embeddings: "Tensor | None" = None,
    ) -> Any:
        query = split(attention.query_proj(hidden if query_states is None else query_states))
        key, value = split(attention.key_proj(hidden)), split(attention.value_proj(hidden))
        scores = query @ key.transpose(-1, -2)
        if relative_pos is not None and rel_embeddings is not None:
            span, shared = attention.pos_ebd_size, attention.share_att_key
            table = rel_embeddings[: 2 * span]  # [distances, hidden]
            distances = relative_pos.long()[:, None].expand(scores.shape)
            if "c2p" in kinds:
                project = attention.key_proj if shared else attention.pos_key_proj
                given = query @ split(project(table)).transpose(-1, -2)
                scores = scores + given.gather(-1, (distances + span).clamp(0, 2 * span - 1))
            if "p2c" in kinds:
                project = attention.query_proj if shared else attention.pos_query_proj
                given = key @ split(project(table)).transpose(-1, -2)
                given = given.gather(-1, (span - distances).clamp(0, 2 * span - 1))
                scores = scores + given.transpose(-1, -2)
        scores = scores / (query.shape[-1] * (1 + len(kinds))) ** 0.5
        weights = scores.masked_fill(~attention_mask.bool(), MASKED).softmax(dim=-1)
        return (weights @ value).transpose(1, 2).flatten(2), weights

    return forward


FAMILY = Family(
    model_type="deberta-v2",
    mixes_neighbors="config",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
    },
    layer_path="deberta.encoder.layer",
    embedding_path="deberta.embeddings.word_embeddings",
    mask="binary",
    heads=(
        Parts(
            "attention",
            (
                Cut("self.query_proj"),
                Cut("self.key_proj"),
                Cut("self.value_proj"),
                Cut("self.pos_key_proj"),
                Cut("self.pos_query_proj"),
                Cut("output.dense", 1),
            ),
        ),
    ),
    neurons=(BERT_NEURONS,),
    embedding_projection="deberta.embeddings.embed_proj",
    projects_normalized=False,
    prepare=_prepare,
)
