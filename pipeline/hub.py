"""Models on the Hugging Face hub: the cached snapshot, or a download."""

import contextlib
import re
from pathlib import Path

from edgebert.targets.errors import InputError, MachineError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]


def is_hub_id(name: str) -> bool:
    """True for `owner/name`; a path starts with a dot, a slash or `~`."""
    return HUB_ID.fullmatch(name) is not None


def hub_snapshot(hub_id: str, allow_pickle: bool) -> Path:
    """Folder of a hub model: the cached one where it is complete, else downloaded.

    HF_HUB_OFFLINE and HF_HOME mean what they mean to huggingface_hub.

    Raises:
        InputError: the hub has no such model.
        MachineError: not cached and not to be had: no network, or access is gated.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    patterns = [*FILES, "pytorch_model.bin"] if allow_pickle else FILES

    def snapshot(local_files_only: bool) -> Path:
        return Path(
            snapshot_download(
                hub_id,
                allow_patterns=patterns,
                ignore_patterns=["*/*"],  # onnx/, tf/ and the like
                local_files_only=local_files_only,
            )
        )

    with contextlib.suppress(Exception):  # what the cache lacks, the download says better
        cached = snapshot(local_files_only=True)
        if any(cached.glob("*.safetensors")) or (allow_pickle and any(cached.glob("*.bin"))):
            return cached
    cure = (
        f"`hf download {hub_id} --local-dir M` where there is a network, then --model ./M; "
        "or --init random for sizes and speeds"
    )
    try:
        return snapshot(local_files_only=False)
    except GatedRepoError as error:
        raise MachineError(f"{hub_id} is gated: it needs an account", "", cure) from error
    except RepositoryNotFoundError as error:
        raise InputError(f"the hub has no model '{hub_id}'", "", "check its spelling") from error
    except Exception as error:  # the HTTP library of the day raises its own kinds
        reason = type(error).__name__
        raise MachineError(
            f"{hub_id} is not at hand, the hub out of reach ({reason})", "", cure
        ) from error
