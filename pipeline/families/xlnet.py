"""XLNet (Yang et al. 2019, arXiv:1906.08237): relative positions, read from the right."""

from typing import TYPE_CHECKING, Any

from edgebert.pipeline.families.family import Cut, Family, Parts

if TYPE_CHECKING:
    from torch import Tensor, nn


def _prepare(model: "nn.Module", lengths: tuple[int, ...]) -> None:
    """For fixed lengths, make the sinusoids constants: LiteRT lacks what builds them."""
    import torch

    transformer: Any = model.transformer
    transformer.config.use_mems_eval = False  # one text at a time: nothing to remember
    with torch.no_grad():
        tables = {
            length: transformer.relative_positional_encoding(length, length, bsz=1)
            for length in lengths
        }  # length -> [2 * length, 1, hidden]

    def constant(qlen: int, klen: int, bsz: int | None = None, device: Any = None) -> "Tensor":
        return tables[qlen].expand(-1, bsz, -1)

    if lengths:
        transformer.relative_positional_encoding = constant


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
