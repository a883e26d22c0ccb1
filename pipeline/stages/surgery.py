"""A checkpoint's tensors and configuration on their way to smaller ones."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch

from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.pipeline.stages.factorize import factorize_embedding
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.pruned_model import FIELD, pruned_class
from edgebert.pipeline.stages.structure import Slicing, Tensors, Unit, find_slicings, find_units
from edgebert.targets.errors import InputError

_AUTO = ("AutoModelForSequenceClassification", "AutoModelForTokenClassification")


class Surgery:
    """Works on a copy of the tensors by their names; `model` puts them together again.

    Args:
        checkpoint: what is to be pruned.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.family, self.task = checkpoint.family, checkpoint.task
        self.where = str(checkpoint.path / "config.json")
        self.before: Any = load_model(checkpoint)
        self.tensors: Tensors = {name: t.clone() for name, t in self.before.state_dict().items()}
        self.config: Any = copy.deepcopy(self.before.config)
        self.config.architectures = [type(self.before).__name__]
        self.depth = int(self.config.num_hidden_layers)
        layers: Any = dotted(self.before, self.family.layer_path)
        self.layers = len(layers)  # fewer than the depth where layers share their weights
        # ConvBERT has fewer heads than its configuration says.
        self.head_ratio = min(
            int(getattr(self.config, "head_ratio", 1)), int(self.config.num_attention_heads)
        )
        self.head_count = int(self.config.num_attention_heads) // self.head_ratio
        self.neuron_count = int(getattr(self.config, self.family.neurons_field))
        self.heads = find_units(self.before, self.family, self.family.heads, self.head_count)
        self.neurons = find_units(self.before, self.family, self.family.neurons, self.neuron_count)
        self.shared_heads: list[Slicing] = []  # of every layer at once
        for cut in self.family.shared_heads:
            self.shared_heads += find_slicings(self.before, "", cut)

    def resolve(
        self, heads: float | None, ffn: float | None, layers: float | None
    ) -> tuple[int, int, int]:
        """How many heads, neurons and layers are kept.

        Args:
            heads: an int is their number, a float their share; None keeps all.
            ffn: the same for the neurons of a feed-forward network; a share is rounded.
            layers: the same for layers.

        Raises:
            InputError: nothing would be left or more than there is, a share that gives no whole
                number, or an architecture where this is not defined.
        """
        for name, value, units in (("heads", heads, self.heads), ("ffn", ffn, self.neurons)):
            if value is not None and not (units and all(u.fits(self.tensors) for u in units)):
                raise InputError(
                    f"the {name} of this {self.family.model_type} model cannot be pruned",
                    self.where,
                    f"leave out prune.{name}",
                )
        if layers is not None and 1 < self.layers != self.depth:
            raise InputError(
                f"{self.depth} layers share {self.layers} groups of weights: none can be dropped",
                self.where,
                "leave out prune.layers",
            )
        return (
            resolve_count("heads", heads, self.head_count, self.where),
            resolve_count("ffn", ffn, self.neuron_count, self.where),
            resolve_count("layers", layers, self.depth, self.where),
        )

    def cut_heads(self, left: int, scores: Sequence[torch.Tensor]) -> None:
        """Leave the best heads of each layer.

        Args:
            left: how many.
            scores: of each unit of `heads` [heads].
        """
        if left == self.head_count:
            return
        if self.shared_heads:
            scores = [torch.stack(list(scores)).sum(dim=0)] * len(scores)
        self._cut(self.heads, scores, left)
        for slicing in self.shared_heads:
            kept = best(scores[0], left)
            tensor = self.tensors[slicing.name]
            self.tensors[slicing.name] = slicing.keep(tensor, self.head_count, kept)
        layer = f"{self.family.layer_path}.*"
        cuts = [
            [".".join(part for part in (layer, parts.path, cut.path) if part), cut.axis]
            for parts in self.family.heads
            for cut in parts.cuts
        ]
        cuts += [[cut.path, cut.axis] for cut in self.family.shared_heads]
        earlier = getattr(self.config, FIELD, {})
        before = earlier.get("heads", int(self.config.num_attention_heads))
        last = self.heads[0].slicings[-1]
        width = self.tensors[last.name].shape[last.axis]
        self.config.num_attention_heads = left * self.head_ratio
        setattr(self.config, self.family.head_size_field, width // (last.blocks * left))
        setattr(self.config, FIELD, {"heads": before, "cuts": cuts})
        self.config.auto_map = {_AUTO[self.task == "token"]: "pruned_model.PrunedClassifier"}

    def cut_neurons(self, left: int, scores: Sequence[torch.Tensor]) -> None:
        """Leave the best neurons of each feed-forward network; scores as in `cut_heads`."""
        if left < self.neuron_count:
            self._cut(self.neurons, scores, left)
            setattr(self.config, self.family.neurons_field, left)

    def _cut(self, units: Sequence[Unit], scores: Sequence[torch.Tensor], left: int) -> None:
        for unit, score in zip(units, scores, strict=True):
            kept = best(score, left)
            for slicing in unit.slicings:
                tensor = self.tensors[slicing.name]
                self.tensors[slicing.name] = slicing.keep(tensor, unit.count, kept)

    def drop_layers(self, left: int, scores: torch.Tensor) -> None:
        """Leave the best layers in their order; of shared ones only the depth changes.

        The first one always stays: it may be built in another way (ModernBERT).

        Args:
            left: how many.
            scores: of each layer [layers].
        """
        if left == self.depth:
            return
        self.config.num_hidden_layers = left
        if self.layers == 1:
            return
        kept = [0, *(1 + index for index in best(scores[1:], left - 1))]
        prefix = f"{self.family.layer_path}."
        tensors: Tensors = {}
        for name, tensor in self.tensors.items():
            index, _, rest = name.removeprefix(prefix).partition(".")
            if not name.startswith(prefix):
                tensors[name] = tensor
            elif int(index) in kept:
                tensors[f"{prefix}{kept.index(int(index))}.{rest}"] = tensor
        self.tensors = tensors
        for field in ("layer_types", "num_hidden_groups"):
            value = getattr(self.config, field, None)
            if isinstance(value, list):
                setattr(self.config, field, [value[index] for index in kept])
            elif value is not None:
                setattr(self.config, field, left)

    @property
    def token_ids(self) -> list[int]:
        """Ids that have to stay whatever the texts use.

        Those that the configuration names, and where positions count from the padding token all up
        to it, so that its id stays.
        """
        named = [v for k, v in self.config.to_dict().items() if k.endswith("_token_id")]
        ids = [i for v in named for i in (v if isinstance(v, list) else [v]) if i is not None]
        if self.family.positions_after_padding:
            ids += range(int(self.config.pad_token_id) + 1)
        return ids

    def keep_tokens(self, keep: Sequence[int]) -> None:
        """Leave the embeddings of these ids, renumbered from 0 in their order."""
        new_ids = {old: new for new, old in enumerate(keep)}
        name = f"{self.family.embedding_path}.weight"
        self.tensors[name] = self.tensors[name][list(keep)]
        self.config.vocab_size = len(keep)
        for field, value in self.config.to_dict().items():
            if not field.endswith("_token_id") or value is None:
                continue
            if isinstance(value, list):
                setattr(self.config, field, [new_ids[i] for i in value if i in new_ids])
            else:  # what the tokenizer does not have is of no use to the model
                setattr(self.config, field, new_ids.get(value))

    def factorize(self, size: int) -> None:
        """Store word vectors of `size` numbers; see `factorize_embedding`."""
        self.tensors = factorize_embedding(self.tensors, self.family, size)
        self.config.embedding_size = size

    def model(self) -> Any:
        """The pruned classifier."""
        model = pruned_class(self.config)._from_config(self.config)
        model.load_state_dict(self.tensors)
        return model.eval()


def best(scores: torch.Tensor, count: int) -> list[int]:
    """Indices of the highest scores, ascending; of equal ones the first."""
    return sorted(torch.argsort(scores, descending=True, stable=True)[:count].tolist())


def resolve_count(name: str, keep: float | None, total: int, where: str) -> int:
    """The number that is kept of `total`.

    Args:
        name: `heads`, `layers` or `ffn`, whose share is rounded.
        keep: an int is the number, a float the share; None keeps all.
        total: how many there are.
        where: for the message.

    Raises:
        InputError: none would be left or more than all, or a share that gives no whole number.
    """
    if keep is None:
        return total
    left = keep if isinstance(keep, int) else keep * total
    if name == "ffn":
        left = round(left)
    if not math.isclose(left, round(left), abs_tol=1e-6):
        raise InputError(
            f"prune.{name} = {keep}: {left:g} of {total} is not a whole number",
            where,
            f"give the number that is kept, 1 to {total}, or another share",
        )
    if not 1 <= round(left) <= total:
        raise InputError(
            f"prune.{name} = {keep} of {total}: at least one has to stay, at most all can",
            where,
            f"give the number that is kept, 1 to {total}, or a share between 0 and 1",
        )
    return round(left)
