"""DeBERTa v2 and v3 (He et al. 2021, arXiv:2111.09543): logarithmic position buckets."""

from typing import TYPE_CHECKING, Any

from edgebert.pipeline.families.family import BERT_NEURONS, MASKED, Cut, Family, Parts

if TYPE_CHECKING:
    from torch import Tensor, nn


def _prepare(model: "nn.Module", lengths: tuple[int, ...]) -> None:
    """Keep batch and heads apart in attention, and take only the distances that a text has.

    transformers makes one dimension of both and parts it again, each time with a shape that is put
    together at run time, and multiplies by the whole table of distances, once for every text.
    """
    for layer in model.get_submodule(FAMILY.layer_path).children():
        attention = layer.get_submodule("attention.self")
        attention.forward = _attend(attention)


def _attend(attention: Any) -> Any:
    """The forward of a `DisentangledSelfAttention` with the same weights."""
    import torch

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
            shared = attention.share_att_key
            # Of the table, the distances that a text of this length has: 0, 1, ... and -1, -2, ...
            distances = torch.cat([relative_pos[0, :, 0], relative_pos[0, 0, 1:]]).long()
            span = attention.pos_ebd_size
            rows = (distances + span).clamp(0, 2 * span - 1)
            place = torch.arange(hidden.shape[1])
            ahead = place[:, None] - place[None, :]
            pairs = torch.where(ahead < 0, hidden.shape[1] - 1 - ahead, ahead)

            def project(linear: Any) -> "Tensor":  # [heads, size, distances]
                return split(linear(rel_embeddings).index_select(0, rows)).transpose(-1, -2)

            # Expanded last: LiteRT's converter gathers wrongly by what is transposed after that.
            if "c2p" in kinds:
                given = query @ project(attention.key_proj if shared else attention.pos_key_proj)
                scores = scores + given.gather(-1, pairs.expand(scores.shape))
            if "p2c" in kinds:
                given = key @ project(attention.query_proj if shared else attention.pos_query_proj)
                scores = scores + given.gather(-1, pairs.T.expand(scores.shape)).transpose(-1, -2)
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
