"""What differs between architectures, as fields that shared code asks.

Add a family by adding one module that defines `FAMILY`; `find_family` finds it by
`config.model_type`. No shared code compares a family's name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedConfig

# Added to the attention scores of padding. exp(-100) is 0 in fp32 against any score of a real
# token, and unlike the usual -3.4e38 it leaves static int8 scales usable and is finite in fp16.
MASKED = -100.0
# Added on top where a query sees nothing but padding: absorbs the scores, so that its attention
# is uniform as in PyTorch.
ALL_MASKED = -1e20


def additive_mask(visible: "Tensor", masked: float = MASKED) -> "Tensor":
    """What to add to attention scores so that only the visible keys are attended to.

    Args:
        visible: 1 where a query may attend to a key, else 0, of shape [batch, 1, query or 1, key].
        masked: what is added where a key is not visible.
    """
    real = visible.float()
    nothing = 1.0 - real.amax(dim=-1, keepdim=True)
    return (1.0 - real) * (masked + ALL_MASKED * nothing)


@dataclass(frozen=True)
class Cut:
    """A matrix with a part for each attention head, or for each neuron.

    Attributes:
        path: to a module, whose weight is meant and where `axis` is 0 its bias too, or to a
            parameter. What a model does not have is passed over.
        axis: the axis of the parts.
        blocks: how often all parts follow each other along it (query, key and value in one: 3).
    """

    path: str
    axis: int = 0
    blocks: int = 1


@dataclass(frozen=True)
class Parts:
    """Matrices whose parts are pruned together.

    Attributes:
        path: from a layer to the module they are in, empty for the layer itself; `*` is every
            module of a list.
        cuts: the matrices; the last one is the linear module that reads what the parts give.
    """

    path: str
    cuts: tuple[Cut, ...]


BERT_HEADS = Parts(
    "attention", (Cut("self.query"), Cut("self.key"), Cut("self.value"), Cut("output.dense", 1))
)
BERT_NEURONS = Parts("", (Cut("intermediate.dense"), Cut("output.dense", 1)))


def _leave(model: "nn.Module", lengths: tuple[int, ...]) -> None:
    """The default of `Family.prepare`: nothing to change."""


@dataclass(frozen=True)
class Family:
    """One architecture.

    Attributes:
        model_type: `model_type` of its configuration.
        tiny_config: keyword arguments of a configuration small enough for tests.
        layer_path: attribute path from the classifier model to the list of layers (or of groups).
        embedding_path: attribute path from the classifier model to the word embedding.
        token_types: whether the model takes `token_type_ids`: where the configuration has more
            than one type (`config`), `always`, or `never`.
        positions_after_padding: True where positions are counted from `pad_token_id + 1`, so that
            the table holds that many fewer tokens (RoBERTa: 514 positions, 512 tokens).
        trained_length: longest input where the configuration names no limit.
        mask: the form of attention mask the model takes from the export wrapper: `additive` is
            [batch, 1, 1, seq] with 0 and a negative constant, `binary` is [batch, seq] of 0 and 1.
        masked: the constant of the additive mask.
        pads_left: True where padding goes before the text (XLNet reads the last token).
        mixes_neighbors: whether a layer mixes positions other than by attention, so that what is at
            a padded position reaches the tokens beside it: where the configuration has a kernel
            over positions (`config`), `always`, or `never`.
        heads: where the attention heads of a layer are; empty where they cannot be pruned.
        head_size_field: field of the configuration that keeps the size of a head.
        shared_heads: matrices outside of the layers, by their path from the classifier model, with
            a part for each head of every layer: all layers then keep the same heads.
        neurons: where the neurons of a layer's feed-forward networks are.
        neurons_field: field of the configuration with their number.
        embedding_projection: path from the classifier model to the projection of embeddings of
            another size to the hidden size; None where the architecture has none.
        projects_normalized: False where the embeddings are normalized after that projection.
        prepare: changes a loaded model in place before export, where an exporter cannot take it as
            it is; it is given the token lengths the export is for (empty: dynamic).
    """

    model_type: str
    tiny_config: dict[str, Any]
    layer_path: str
    embedding_path: str
    token_types: Literal["config", "always", "never"] = "config"
    positions_after_padding: bool = False
    trained_length: int = 512
    mask: Literal["additive", "binary"] = "additive"
    masked: float = MASKED
    pads_left: bool = False
    mixes_neighbors: Literal["config", "always", "never"] = "never"
    heads: tuple[Parts, ...] = ()
    head_size_field: str = "attention_head_size"
    shared_heads: tuple[Cut, ...] = ()
    neurons: tuple[Parts, ...] = ()
    neurons_field: str = "intermediate_size"
    embedding_projection: str | None = None
    projects_normalized: bool = True
    prepare: Callable[["nn.Module", tuple[int, ...]], None] = _leave

    def max_length(self, config: "PreTrainedConfig") -> int:
        """Longest input in tokens, special tokens included."""
        positions = int(getattr(config, "max_position_embeddings", 0) or 0)
        if positions <= 0:
            return self.trained_length
        return positions - (int(config.pad_token_id) + 1 if self.positions_after_padding else 0)

    def padding_is_apart(self, config: "PreTrainedConfig") -> bool:
        """True where nothing but attention could carry padding to a token."""
        if self.mixes_neighbors == "config":
            return int(getattr(config, "conv_kernel_size", 0) or 0) == 0
        return self.mixes_neighbors == "never" and not self.pads_left

    def has_token_type_ids(self, config: "PreTrainedConfig") -> bool:
        """True where the model tells the two texts of a pair apart by token types."""
        if self.token_types == "config":
            return int(getattr(config, "type_vocab_size", 0) or 0) > 1
        return self.token_types == "always"
