"""Factorized embedding: V x H becomes V x E and E x H by a singular value decomposition."""

import torch

from edgebert.pipeline.families import Family
from edgebert.pipeline.stages.structure import Tensors
from edgebert.targets.errors import InputError


def factorize_embedding(tensors: Tensors, family: Family, size: int) -> Tensors:
    """The tensors with embeddings of `size` numbers (ALBERT, Lan et al. 2019, arXiv:1909.11942).

    The directions that are kept are those with the largest sum of squares over words, positions and
    token types. What has no part in other directions is reproduced as it was.

    Architectures that normalize before they project (ALBERT, ELECTRA) need a detour: a vector is
    stored in the plane orthogonal to (1, ..., 1), where its mean is zero, so that the
    normalization only scales it, and by the length that it had.

    Args:
        tensors: the model's state.
        family: its family.
        size: E, numbers of a stored vector.

    Raises:
        InputError: the architecture has no projection, or `size` is not smaller than now.
    """
    projection = family.embedding_projection
    if projection is None:
        raise InputError(
            f"{family.model_type} has no place for a factorized embedding",
            "prune.embedding_size",
            "leave it out, or distill into an ALBERT: student albert-like",
        )
    folder = family.embedding_path.rpartition(".")[0]
    tables = [
        name
        for name, tensor in tensors.items()
        if name.startswith(f"{folder}.") and tensor.ndim == 2 and not name.startswith(projection)
    ]
    now = tensors[f"{family.embedding_path}.weight"].shape[1]
    smallest = 2 if family.projects_normalized else 1
    if not smallest <= size < now:
        raise InputError(
            f"an embedding size of {size}, where the model has {now}",
            "prune.embedding_size",
            f"set {smallest} to {now - 1}",
        )
    weight = tensors.get(f"{projection}.weight", torch.eye(now))  # [H, E now]
    changed = dict(tensors)
    if not family.projects_normalized:
        projected = {name: tensors[name] @ weight.T for name in tables}  # [rows, H]
        basis = _directions(list(projected.values()), size)  # [H, E]
        changed |= {name: table @ basis for name, table in projected.items()}
        changed[f"{projection}.weight"] = basis
        return changed
    centered = {name: tensors[name] - tensors[name].mean(dim=1, keepdim=True) for name in tables}
    basis = _directions(list(centered.values()), size - 1)  # [E now, E - 1]
    plane = _zero_mean_plane(size)  # [E, E - 1]
    changed |= {name: table @ basis @ plane.T for name, table in centered.items()}
    scale, shift = tensors[f"{folder}.LayerNorm.weight"], tensors[f"{folder}.LayerNorm.bias"]
    changed[f"{folder}.LayerNorm.weight"] = torch.ones(size)
    changed[f"{folder}.LayerNorm.bias"] = torch.zeros(size)
    changed[f"{projection}.weight"] = (weight * scale) @ basis @ plane.T * (now / size) ** 0.5
    bias = tensors.get(f"{projection}.bias", torch.zeros(weight.shape[0]))
    changed[f"{projection}.bias"] = weight @ shift + bias
    return changed


def _directions(tables: list[torch.Tensor], count: int) -> torch.Tensor:
    """Orthonormal directions [width, count] that keep most of the tables, each weighing the same.

    From the Gram matrix: the directions of a V x H table are those of an H x H one.
    """
    gram = sum(
        (table.double().T @ table.double() / len(table) for table in tables), torch.zeros(())
    )
    return torch.linalg.svd(gram).U[:, :count].float()


def _zero_mean_plane(size: int) -> torch.Tensor:
    """An orthonormal basis [size, size - 1] of the vectors whose mean is zero."""
    frame = torch.eye(size, dtype=torch.float64)
    frame[:, 0] = 1
    return torch.linalg.qr(frame).Q[:, 1:].float()
