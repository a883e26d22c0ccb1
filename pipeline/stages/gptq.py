"""GPTQ (Frantar et al. 2022, arXiv:2210.17323): rounding that corrects itself as it goes.

What a product x W loses depends on the inputs it gets: with H the sum of x x^T over calibration
texts, a matrix is rounded column by column, and what a column loses is taken up by those that are
still to come, in the proportions that H's inverse gives. At 4 bits the products' error halves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgebert.pipeline.artifact import Checkpoint, TokenRow
from edgebert.pipeline.runtimes.stored_tensor import LARGE
from edgebert.pipeline.stages.blocks import Array, Blocks, Levels
from edgebert.pipeline.stages.load import load_model

# The paper's: this share of the diagonal's mean is added to it, so that H can be inverted.
DAMPING = 0.01
TOKENS = 1024  # whose inputs are kept before they are summed up

# Layer (as in `Layer.name`) -> H [inputs, inputs].
Moments = Mapping[str, Array]


def input_moments(checkpoint: Checkpoint, rows: Sequence[TokenRow]) -> Moments:
    """The sum of x x^T over the inputs of every large linear layer.

    A layer that several depths share sums over all of them; layers that read the same tensor
    (query, key and value) share one array. BERT-base takes 0.55 GB.

    Args:
        checkpoint: the fp32 model.
        rows: calibration rows, run one by one without padding.
    """
    import torch
    from torch import nn

    model = load_model(checkpoint)
    waiting: dict[str, list[torch.Tensor]] = {}
    moments: dict[str, torch.Tensor] = {}
    same: dict[str, str] = {}  # layer -> the one whose input it shares
    last: list[Any] = [None, ""]

    def watch(name: str) -> Any:
        def see(_: Any, arguments: tuple[Any, ...]) -> None:
            if arguments[0] is last[0]:
                same[name] = last[1]
                return
            last[:] = [arguments[0], name]
            waiting.setdefault(name, []).append(arguments[0].flatten(0, -2))

        return see

    def sum_up() -> None:
        for name, inputs in waiting.items():
            x = torch.cat(inputs)  # [tokens, inputs]
            product = x.T @ x
            moments[name] = moments[name].add_(product) if name in moments else product
        waiting.clear()

    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear) and layer.weight.numel() > LARGE:
            layer.register_forward_pre_hook(watch(name))
    tokens = 0
    with torch.no_grad():
        for row in rows:
            inputs = {"input_ids": torch.tensor([row.ids])}
            if checkpoint.has_token_type_ids:
                inputs["token_type_ids"] = torch.tensor([row.type_ids])
            model(**inputs)
            tokens += len(row.ids)
            if tokens >= TOKENS:
                sum_up()
                tokens = 0
        sum_up()
    found = {name: array.numpy() for name, array in moments.items()}
    return found | {name: found[other] for name, other in same.items() if name not in found}


def quantize_matrix(matrix: Array, levels: Levels, moments: Array | None = None) -> Blocks:
    """Quantize [rows, columns] to blocks of columns.

    Args:
        matrix: a row for each output.
        levels: what a block can hold.
        moments: H of its inputs [columns, columns]; None rounds every value by itself.
    """
    if moments is None:
        return levels.quantize(matrix)
    spread = _inverse_root(moments)
    rest = matrix.astype(np.float64)
    blocks = []
    for start in range(0, matrix.shape[1], levels.block):
        stop = min(start + levels.block, matrix.shape[1])
        part = rest[:, start:stop]
        block = levels.quantize(part.astype(np.float32))  # for its scale and zero point
        scale, zero = block.scale[:, 0], block.zero[:, 0]
        errors = np.empty_like(part)
        for column in range(stop - start):
            diagonal = spread[start + column, start + column]
            q = levels.round(part[:, column].astype(np.float32), scale, zero)
            value = (q.astype(np.float64) - zero) * scale
            errors[:, column] = (part[:, column] - value) / diagonal
            block.q[:, 0, column] = q
            later = spread[start + column, start + column + 1 : stop]
            part[:, column + 1 :] -= np.outer(errors[:, column], later)
        rest[:, stop:] -= errors @ spread[start:stop, stop:]
        blocks.append(block)
    q, scale, zero = (
        np.concatenate([getattr(block, name) for block in blocks], axis=1)
        for name in ("q", "scale", "zero")
    )
    return Blocks(q, scale, zero)


def _inverse_root(moments: Array) -> npt.NDArray[np.float64]:
    """Upper triangular R with R^T R = H^-1: its rows say where the error of a column goes."""
    damped = moments.astype(np.float64)
    damped[np.diag_indices_from(damped)] += DAMPING * max(damped.diagonal().mean(), 1e-12)
    root: npt.NDArray[np.float64] = np.linalg.cholesky(np.linalg.inv(damped)).T
    return root
