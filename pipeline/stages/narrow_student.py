"""A narrower student that starts from what its teacher computes, not from random weights.

TinyBERT (Jiao et al. 2019, arXiv:1909.10351) pretrains its small student on a large corpus first.
Without one, the teacher's own weights are cut to the student's sizes, layer after layer:

- of the hidden size the dimensions stay from which the others are best predicted (QR with column
  pivoting, Businger and Golub 1965, on the hidden states of sample texts);
- what a matrix reads from the others is predicted by least squares from what the student has, which
  also bridges the layers that it leaves out;
- an attention head keeps the largest singular values of its query-key and value-output products;
- LayerNorm's weight and bias are fitted, since it sees fewer dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor, nn

from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.pipeline.stages.layer_maps import resolve_layer_map
from edgebert.pipeline.training_settings import Pair

TEXTS_PER_DIMENSION = 2  # fewer, and what the head reads is fitted to the sample alone
SAMPLE = 1500  # texts: as many first tokens, for a few hundred unknowns
_RIDGE = 1e-4  # of the mean square of the inputs
_MODULES = (
    "embeddings.word_embeddings",
    "embeddings.position_embeddings",
    "embeddings.token_type_embeddings",
    "embeddings.LayerNorm",
    "pooler.dense",
)
_LAYER_MODULES = (
    "attention.self.query",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


def can_narrow(teacher: Checkpoint, source: Any, student: Any, texts: Sequence[str]) -> bool:
    """True where the teacher is a BERT as wide as the student, and there are texts enough."""
    encoder = getattr(source, source.base_model_prefix)
    has = {name for name, _ in encoder.named_modules()}
    layers: Any = dotted(source, teacher.family.layer_path)
    inside = {name for name, _ in layers[0].named_modules()}
    old, new = source.config, student.config
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers")
    return (
        len(texts) >= TEXTS_PER_DIMENSION * new.hidden_size
        and set(_MODULES) <= has
        and set(_LAYER_MODULES) <= inside
        and not teacher.family.positions_after_padding
        and isinstance(getattr(source, "classifier", None), nn.Linear)
        and old.num_attention_heads == new.num_attention_heads
        and all(getattr(new, size) <= getattr(old, size) for size in sizes)
        and old.type_vocab_size == new.type_vocab_size
        and old.hidden_act == new.hidden_act
    )


def narrow(
    teacher: Checkpoint,
    source: Any,
    student: Any,
    texts: Sequence[str],
    pairs: Sequence[Pair] = (),
) -> None:
    """Fill a BERT classifier's weights from a wider one's; in place.

    Args:
        teacher: the teacher's checkpoint, whose tokenizer the student has.
        source: the teacher's model.
        student: the student's model, for the same labels.
        texts: sample texts.
        pairs: which layer each of the student's is; by default the uniform map.
    """
    picked = texts[:: max(1, len(texts) // SAMPLE)]
    encodings = teacher.tokenizer.encode_batch(list(picked))
    limit = int(student.config.max_position_embeddings)
    ids = [torch.tensor([encoding.ids[:limit]]) for encoding in encodings if encoding.ids]
    with torch.no_grad():
        seen = _observe(teacher, source.eval(), ids)
        _Narrowing(source, student.eval(), seen).run(teacher, ids, pairs)


@dataclass(frozen=True)
class _Seen:
    """What the teacher computes for the sample, all texts' tokens after each other.

    Attributes:
        hidden: after the embeddings and after each layer, [tokens, hidden] each.
        attended: after the attention block of each layer, in the same form.
        pooled: what the classifier reads, [texts, hidden].
        lengths: tokens of each text.
    """

    hidden: list[Tensor]
    attended: list[Tensor]
    pooled: Tensor
    lengths: list[int]


def _observe(teacher: Checkpoint, source: Any, ids: Sequence[Tensor]) -> _Seen:
    encoder = getattr(source, source.base_model_prefix)
    layers: Any = dotted(source, teacher.family.layer_path)
    attended: list[list[Tensor]] = [[] for _ in layers]
    handles = [
        layer.attention.output.register_forward_hook(
            lambda module, inputs, output, kept=kept: kept.append(output[0])
        )
        for layer, kept in zip(layers, attended, strict=True)
    ]
    outputs = [encoder(input_ids=row, output_hidden_states=True) for row in ids]
    for handle in handles:
        handle.remove()
    states = zip(*(output.hidden_states for output in outputs), strict=True)
    return _Seen(
        hidden=[torch.cat([state[0] for state in each]) for each in states],
        attended=[torch.cat(each) for each in attended],
        pooled=torch.cat([output.pooler_output for output in outputs]),
        lengths=[row.shape[1] for row in ids],
    )


class _Narrowing:
    """One teacher, one student, and what the teacher was seen to compute."""

    def __init__(self, source: Any, student: Any, seen: _Seen) -> None:
        self.source, self.student, self.seen = source, student, seen
        self.width = int(student.config.hidden_size)
        self.heads = int(student.config.num_attention_heads)
        self.kept = _best_columns(torch.cat(seen.hidden), self.width)

    def run(self, teacher: Checkpoint, ids: Sequence[Tensor], pairs: Sequence[Pair]) -> None:
        """Fill embeddings, layers and head."""
        encoder = getattr(self.source, self.source.base_model_prefix)
        layers: Any = dotted(self.source, teacher.family.layer_path)
        goal = self.student.bert
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            table = getattr(encoder.embeddings, name).weight[:, self.kept]
            weight = getattr(goal.embeddings, name).weight
            weight.copy_(table[: len(weight)])
        embeddings = goal.embeddings
        embeddings.LayerNorm.reset_parameters()
        normal = torch.cat([embeddings(input_ids=row)[0] for row in ids])
        state = self._fit_norm(embeddings.LayerNorm, normal, self.seen.hidden[0])
        uniform = resolve_layer_map("uniform", len(goal.encoder.layer), len(layers))
        for ours, theirs in pairs or uniform:
            layer = goal.encoder.layer[ours - 1]
            state = self._layer(layers[theirs - 1], layer, state, theirs)
        self._head(encoder.pooler.dense, state)

    def _layer(self, source: Any, goal: Any, state: Tensor, index: int) -> Tensor:
        """Fill one layer; the states [tokens, width] before it, and those after it."""
        reads = _regress(state, self.seen.hidden[index - 1])
        self._attention(source.attention, goal.attention, reads)
        texts = [text[None] for text in state.split(self.seen.lengths)]
        context = torch.cat([goal.attention.self(text)[0][0] for text in texts])
        mixed = goal.attention.output.dense(context) + state
        norm = goal.attention.output.LayerNorm
        state = self._fit_norm(norm, _normalized(mixed), self.seen.attended[index - 1])

        reads = _regress(state, self.seen.attended[index - 1])
        inner = source.intermediate.dense
        active = source.intermediate.intermediate_act_fn(inner(self.seen.attended[index - 1]))
        outer = source.output.dense.weight  # [hidden, neurons]
        power = active.square().mean(0) * outer.square().sum(0)
        neurons = power.topk(goal.intermediate.dense.out_features).indices.sort().values
        _set(goal.intermediate.dense, inner.weight[neurons] @ reads[:, :-1], None)
        goal.intermediate.dense.bias.copy_(
            inner.weight[neurons] @ reads[:, -1] + inner.bias[neurons]
        )
        active = goal.intermediate(state)
        wanted = self.seen.hidden[index]
        _set(
            goal.output.dense,
            outer[self.kept][:, neurons],
            source.output.dense.bias[self.kept],
        )
        mixed = goal.output.dense(active) + state
        return self._fit_norm(goal.output.LayerNorm, _normalized(mixed), wanted)

    def _attention(self, source: Any, goal: Any, reads: Tensor) -> None:
        """Fill queries, keys, values and their output; `reads` is [hidden, width + 1]."""

        def rows(linear: Any) -> Tensor:  # [heads, head size, width + 1], the bias last
            weight = linear.weight @ reads
            weight[:, -1] += linear.bias
            return weight.unflatten(0, (self.heads, -1))

        query, key, value = (rows(getattr(source.self, name)) for name in ("query", "key", "value"))
        size = self.width // self.heads
        scale = (size / query.shape[1]) ** 0.5  # each divides by the root of its own head size
        query, key = _truncated(query.transpose(1, 2) @ key * scale, size)
        output = source.output.dense.weight[self.kept].unflatten(1, (self.heads, -1))
        output, value = _truncated(output.transpose(0, 1) @ value, size)
        for name, found in (("query", query), ("key", key), ("value", value)):
            flat = found.flatten(0, 1)
            _set(getattr(goal.self, name), flat[:, :-1], flat[:, -1])
        weight = output.permute(2, 0, 1).flatten(1)  # [width, heads * head size]
        _set(goal.output.dense, weight, source.output.dense.bias[self.kept])

    def _head(self, pooler: Any, state: Tensor) -> None:
        """Fill pooler and classifier, which read the first token of each text."""
        begins = torch.tensor([0, *self.seen.lengths[:-1]]).cumsum(0)
        first = state[begins]
        reads = _regress(first, self.seen.hidden[-1][begins])
        units = _best_columns(self.seen.pooled, self.width)
        goal = self.student.bert.pooler
        bias = pooler.weight[units] @ reads[:, -1] + pooler.bias[units]
        _set(goal.dense, pooler.weight[units] @ reads[:, :-1], bias)
        reads = _regress(torch.tanh(goal.dense(first)), self.seen.pooled)
        classifier = self.source.classifier
        bias = classifier.weight @ reads[:, -1] + classifier.bias
        _set(self.student.classifier, classifier.weight @ reads[:, :-1], bias)

    def _fit_norm(self, norm: nn.LayerNorm, normal: Tensor, wanted: Tensor) -> Tensor:
        """Fit weight and bias to the teacher's kept dimensions; the result [tokens, width]."""
        goal = wanted[:, self.kept]
        mean, goal_mean = normal.mean(0), goal.mean(0)
        power = (normal - mean).square().sum(0).clamp_min(1e-6)
        weight = ((normal - mean) * (goal - goal_mean)).sum(0) / power
        norm.weight.copy_(weight)
        norm.bias.copy_(goal_mean - weight * mean)
        return normal * norm.weight + norm.bias


def _best_columns(values: Tensor, count: int) -> list[int]:
    """Columns [rows, columns] that the others are best predicted from."""
    centered = values - values.mean(0)
    gram = (centered.T @ centered).double().numpy()
    root = scipy.linalg.sqrtm(gram).real  # as many rows as columns, and the same inner products
    _, _, order = scipy.linalg.qr(root, mode="economic", pivoting=True)
    return sorted(int(index) for index in order[:count])


def _regress(given: Tensor, wanted: Tensor) -> Tensor:
    """Least squares [outputs, inputs + 1], the constant last."""
    x = torch.cat([given, torch.ones(len(given), 1)], dim=1).double()
    gram = x.T @ x
    ridge = _RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
    return torch.linalg.solve(gram + ridge, x.T @ wanted.double()).T.float()


def _truncated(products: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Two factors of each product [heads, a, b], [heads, size, a] and [heads, size, b]."""
    u, s, v = np.linalg.svd(products.double().numpy(), full_matrices=False)
    root = np.sqrt(s[:, :size])[:, :, None]
    left = root * np.swapaxes(u, 1, 2)[:, :size]
    return torch.from_numpy(left).float(), torch.from_numpy(root * v[:, :size]).float()


def _normalized(values: Tensor) -> Tensor:
    """Zero mean and unit variance of every row."""
    return nn.functional.layer_norm(values, values.shape[-1:])


def _set(linear: Any, weight: Tensor, bias: Tensor | None) -> None:
    linear.weight.copy_(weight)
    if bias is not None:
        linear.bias.copy_(bias)
