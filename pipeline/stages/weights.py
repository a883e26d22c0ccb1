"""The weights of a checkpoint: find them, check that they are whole, bring them into one file."""

import json
import pickle
import struct
from pathlib import Path
from typing import Any

from edgebert.targets.errors import InputError

SAFETENSORS = "model.safetensors"
PICKLE = "pytorch_model.bin"
LIMIT_HEADER_BYTES = 100_000_000  # of the safetensors format


def find_weights(folder: Path, allow_pickle: bool) -> tuple[Path, ...]:
    """The weight files of a folder: safetensors before pickle, which is not opened beside them.

    Raises:
        InputError: there are none, they are cut short, or they are pickle without `allow_pickle`.
    """
    files = _files_of(folder, SAFETENSORS)
    for file in files:
        check_safetensors(file)
    if files:
        return files
    files = _files_of(folder, PICKLE)
    if not files:
        raise InputError(
            f"no {SAFETENSORS}", str(folder), "give a folder that `save_pretrained` wrote"
        )
    if not allow_pickle:
        raise InputError(
            f"{files[0]} is a pickle, which can run code: pass --allow-pickle if you trust it"
        )
    return files


def _files_of(folder: Path, name: str) -> tuple[Path, ...]:
    """The file of that name, or the shards that its index lists."""
    if (folder / name).exists():
        return (folder / name,)
    index = folder / f"{name}.index.json"
    if not index.exists():
        return ()
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError("not an index of weights", str(index), "download it again") from error
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise InputError(f"missing: {', '.join(missing)}", str(index), "download the rest")
    return tuple(folder / name for name in names)


def check_safetensors(file: Path) -> None:
    """Compare the length of a file with what its header says.

    Raises:
        InputError: cut short, too long, or no safetensors file at all.
    """
    size = file.stat().st_size
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if not 2 <= length <= min(size - 8, LIMIT_HEADER_BYTES):
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            header: dict[str, Any] = json.loads(stream.read(length))
        ends = [t["data_offsets"][1] for name, t in header.items() if name != "__metadata__"]
        expected = 8 + length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error) as error:
        raise InputError(
            f"no whole safetensors file: {error}", str(file), "download or save it again"
        ) from error
    if size != expected:
        raise InputError(
            f"cut short: {size} bytes, and its header says {expected}"
            if size < expected
            else f"damaged: {size} bytes, and its header says {expected}",
            str(file),
            "download or save it again",
        )


def write_single(files: tuple[Path, ...], target: Path) -> None:
    """Write the tensors of several files, or of pickles, into one safetensors file.

    Raises:
        InputError: a pickle holds anything but tensors, or is cut short.
    """
    import torch
    from safetensors.torch import load_file, save_file

    tensors: dict[str, torch.Tensor] = {}
    for file in files:
        if file.suffix == ".safetensors":
            tensors |= load_file(file)
            continue
        try:
            content = torch.load(file, map_location="cpu", weights_only=True)
            tensors |= {str(k): v for k, v in content.items() if isinstance(v, torch.Tensor)}
        except (
            pickle.UnpicklingError,
            RuntimeError,
            EOFError,
            AttributeError,
            ValueError,
        ) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else "empty"
            raise InputError(
                f"no plain PyTorch weights, nothing of it was run: {reason[:160]}", str(file)
            ) from error
    # A clone each: safetensors stores no two names over one storage (tied embeddings).
    whole = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    save_file(whole, target, metadata={"format": "pt"})
