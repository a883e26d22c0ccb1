"""How much a head, a neuron or a layer matters: a first-order Taylor score, or magnitude."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint, Task, dotted
from edgebert.pipeline.stages.batches import Batch, Collator, Texts
from edgebert.pipeline.stages.losses import label_loss
from edgebert.pipeline.stages.structure import Tensors, Unit
from edgebert.pipeline.stages.surgery import Surgery


@dataclass(frozen=True)
class Importance:
    """Scores of what can be pruned; higher is more important.

    Attributes:
        heads: [heads] of each unit.
        neurons: [neurons] of each unit.
        layers: [layers].
    """

    heads: tuple[torch.Tensor, ...]
    neurons: tuple[torch.Tensor, ...]
    layers: torch.Tensor


def taylor_importance(surgery: Surgery, checkpoint: Checkpoint, rows: Sequence[Row]) -> Importance:
    """Sum over texts of |gradient x activation|: what the loss would change by to first order.

    Molchanov et al. 2019, arXiv:1906.10771, for neurons; Michel et al. 2019, arXiv:1905.10650, for
    heads. A part that is used at several depths has what they sum up to; a layer is scored by what
    it adds to its input. One text at a time: nothing is padded.

    Args:
        surgery: where heads and neurons are; its model loses the gradients of its parameters.
        checkpoint: whose tokenizer, labels and task count.
        rows: texts; without a label the model's own answer is taken for it.

    Raises:
        InputError: a label that the model does not know.
    """
    model, units = surgery.before, [*surgery.heads, *surgery.neurons]
    layers: Any = dotted(model, checkpoint.family.layer_path)
    sums: dict[int, torch.Tensor] = {}  # unit or layer -> what the text of now gives
    hooks = [dotted(model, checkpoint.family.embedding_path).register_forward_hook(_require_grad)]
    for index, unit in enumerate(units):
        add = _adder(sums, index, unit.slicings[-1].blocks, unit.count)
        hooks.append(unit.reader.register_forward_pre_hook(_watch_input(add)))
    for index, layer in enumerate(layers):
        add = _adder(sums, len(units) + index, 1, 1)
        hooks.append(layer.register_forward_hook(_watch_residual(add), with_kwargs=True))
    totals: dict[int, torch.Tensor] = {}
    model.requires_grad_(False)
    try:
        for batch in _batches(checkpoint, rows):
            sums.clear()
            targets = batch.pop("labels")
            _loss(model(**batch).logits, targets, checkpoint.task).backward()
            for index, total in sums.items():
                totals[index] = totals.get(index, torch.zeros(())) + total.abs()
    finally:
        for hook in hooks:
            hook.remove()
    scores = [totals[index] for index in range(len(units) + len(layers))]
    split = len(surgery.heads)
    return Importance(
        tuple(scores[:split]),
        tuple(scores[split : len(units)]),
        torch.cat(scores[len(units) :]),
    )


def magnitude_importance(surgery: Surgery) -> Importance:
    """The L2 norm of what belongs to a part (Li et al. 2016, arXiv:1608.08710); needs no data."""
    layers = []
    for index in range(surgery.layers):
        prefix = f"{surgery.family.layer_path}.{index}."
        own = [t for name, t in surgery.tensors.items() if name.startswith(prefix) and t.ndim > 1]
        layers.append(sum(float(tensor.pow(2).sum()) for tensor in own))
    return Importance(
        tuple(_norms(surgery.tensors, unit) for unit in surgery.heads),
        tuple(_norms(surgery.tensors, unit) for unit in surgery.neurons),
        torch.tensor(layers).sqrt(),
    )


def _norms(tensors: Tensors, unit: Unit) -> torch.Tensor:
    """The L2 norm of each part [parts]."""
    squares = [
        slicing.parts(tensors[slicing.name], unit.count).pow(2).sum(dim=1)
        for slicing in unit.slicings
    ]
    return torch.stack(squares).sum(dim=0).sqrt()


def _batches(checkpoint: Checkpoint, rows: Sequence[Row]) -> Iterator[Batch]:
    """Each row as a batch of one, with its target; a word's tag needs none."""
    if checkpoint.task == "token":
        rows = [Row(" ".join(row.tokens) or row.text) for row in rows]
    task: Task = "single_label" if checkpoint.task == "token" else checkpoint.task
    texts = Texts(rows, checkpoint.labels, checkpoint, checkpoint.max_length, task)
    collate = Collator.of(checkpoint)
    return (collate([texts[index]]) for index in range(len(texts)))


def _loss(logits: torch.Tensor, targets: torch.Tensor, task: Task) -> torch.Tensor:
    """The loss of one text; where there is no label, that against the model's own answer."""
    if task == "token":
        logits = logits[0]  # [seq, labels]
        return nn.functional.cross_entropy(logits, logits.argmax(dim=-1), reduction="sum")
    known = targets >= 0 if task == "single_label" else ~targets.isnan()
    if not bool(known.all()):
        own = {
            "single_label": logits.argmax(dim=-1),
            "multi_label": (logits > 0).float(),
            "regression": logits[:, 0].detach() + 1,
        }[task].detach()
        targets = torch.where(known, targets, own)
    return label_loss(logits, targets, task)


def _require_grad(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
    return output.requires_grad_()


Add = Callable[[torch.Tensor], None]


def _adder(sums: dict[int, torch.Tensor], key: int, blocks: int, parts: int) -> Add:
    """Adds gradient x activation [..., blocks x parts x size] to the sums of a unit [parts]."""

    def add(product: torch.Tensor) -> None:
        columns = product.flatten(0, -2).sum(dim=0)
        score = columns.reshape(blocks, parts, -1).sum(dim=(0, 2))
        sums[key] = sums.get(key, torch.zeros(())) + score

    return add


def _watch_input(add: Add) -> Any:
    def hook(module: nn.Module, inputs: Any) -> None:
        seen = inputs[0]
        seen.register_hook(lambda gradient: add(gradient * seen.detach()))

    return hook


def _watch_residual(add: Add) -> Any:
    def hook(module: nn.Module, inputs: Any, named: dict[str, Any], output: Any) -> None:
        before = inputs[0] if inputs else named["hidden_states"]
        after = output[0] if isinstance(output, tuple) else output
        step = (after - before).detach()
        after.register_hook(lambda gradient: add(gradient * step))

    return hook
