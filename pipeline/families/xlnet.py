"""XLNet (Yang et al. 2019, arXiv:1906.08237): relative positions, read from the right."""

from typing import TYPE_CHECKING, Any

from edgebert.pipeline.families.family import MASKED, Cut, Family, Parts

if TYPE_CHECKING:
    from torch import Tensor, nn


def _prepare(model: "nn.Module", lengths: tuple[int, ...]) -> None:
    """Multiply by matrices where transformers has sums over three dimensions (`einsum`).

    No runtime has int8 kernels for those. Positions are the same for every text: they are computed
    once, and for fixed lengths they are constants, since LiteRT lacks what builds them.
    """
    import torch

    transformer: Any = model.transformer
    transformer.config.use_mems_eval = False  # one text at a time: nothing to remember
    original = transformer.relative_positional_encoding
    with torch.no_grad():
        tables = {length: original(length, length) for length in lengths}

    def encoding(qlen: int, klen: int, bsz: int | None = None, device: Any = None) -> "Tensor":
        """Sinusoids [2 * seq, 1, hidden]."""
        table: Tensor = tables[qlen] if lengths else original(qlen, klen)
        return table

    transformer.relative_positional_encoding = encoding
    for layer in transformer.layer:
        layer.rel_attn.forward = _attend(layer.rel_attn, fixed=bool(lengths))


def _attend(attention: Any, fixed: bool) -> Any:
    """The forward of an `XLNetRelativeAttention` with the same weights, for one stream."""
    import torch

    def project(values: "Tensor", weight: "Tensor") -> "Tensor":
        """[seq, batch, hidden] to [batch, heads, seq, size]."""
        heads = (values @ weight.flatten(1)).unflatten(-1, weight.shape[1:])
        return heads.permute(1, 2, 0, 3)

    def bias(parameter: "Tensor") -> "Tensor":
        return parameter[:, None]  # [heads, 1, size]

    def forward(
        hidden: "Tensor",
        _: None,
        attn_mask_h: "Tensor",
        attn_mask_g: "Tensor",
        r: "Tensor",
        seg_mat: "Tensor",
        **__: Any,
    ) -> Any:
        query, key = project(hidden, attention.q), project(hidden, attention.k)
        scores = (query + bias(attention.r_w_bias)) @ key.transpose(2, 3)
        by_distance = (query + bias(attention.r_r_bias)) @ project(r, attention.r).transpose(2, 3)
        seq = hidden.shape[0]
        if fixed:  # by reshaping, which asks for no table of places
            scores = scores + attention.rel_shift_bnij(by_distance, klen=seq)
        else:  # by their place, which asks for no shape at run time
            place = torch.arange(seq)
            distance = seq + place[None, :] - place[:, None]  # a row of r
            scores = scores + by_distance.gather(-1, distance.expand(scores.shape))
        by_segment = (query + bias(attention.r_s_bias)) @ attention.seg_embed.permute(1, 2, 0)
        other = seg_mat[..., 1].permute(2, 0, 1)[:, None] > 0  # [batch, 1, query, key]
        scores = scores + torch.where(other, by_segment[..., 1:], by_segment[..., :1])
        mask = attn_mask_h.permute(2, 3, 0, 1)  # 1 where a key is not attended to
        weights = (scores * attention.scale + MASKED * mask).softmax(dim=-1)
        context = (weights @ project(hidden, attention.v)).permute(2, 0, 1, 3)
        result = context.flatten(2) @ attention.o.flatten(1).T + hidden
        return attention.layer_norm(result), None

    return forward


FAMILY = Family(
    model_type="xlnet",
    tiny_config={
        "d_model": 32,
        "n_layer": 2,
        "n_head": 2,
        "d_inner": 64,
        "pad_token_id": 5,
    },
    layer_path="transformer.layer",
    embedding_path="transformer.word_embedding",
    token_types="always",
    mask="binary",
    pads_left=True,
    prepare=_prepare,
    neurons=(Parts("ff", (Cut("layer_1"), Cut("layer_2", 1))),),
    neurons_field="d_inner",
)
