"""Load: from what the user names to a checkpoint folder, and from there to a torch model."""

import json
import shutil
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.pipeline.families import find_family
from edgebert.pipeline.source import Source, find_source
from edgebert.pipeline.stages.tokenizer_files import TOKENIZER, read_tokenizer
from edgebert.pipeline.stages.weights import SAFETENSORS, find_weights, write_single
from edgebert.targets.errors import InputError

_IN_PLACE = "folder.txt"
_NOTES = "notes.json"
HEAD_CURE = "fine-tune it for your labels first, as `edgebert distill --finetune-teacher` does"


def resolve_model(
    model: str, *, allow_pickle: bool = False, work: Path, require_head: bool = True
) -> Checkpoint:
    """Find a model and load it; the arguments are those of `find_source` and `Load`."""
    source = find_source(model, allow_pickle=allow_pickle)
    work.mkdir(parents=True, exist_ok=True)
    return Load(source, require_head=require_head)(work)


@dataclass(frozen=True)
class Load:
    """Bring a source into the one form that every stage reads.

    Attributes:
        source: what was asked for.
        labels: label names of a model with random weights; two by default.
        require_head: refuse a checkpoint without a classifier; False for what is to be fine-tuned.
    """

    source: Source
    labels: tuple[str, ...] = ("negative", "positive")
    require_head: bool = True

    def __call__(self, out: Path) -> Checkpoint:
        """Leave the checkpoint in `out`, or the name of the folder it is used in.

        Raises:
            InputError: a file of the source is missing, malformed or cut short.
        """
        source = self.source
        if source.folder is None:
            assert source.entry is not None
            from edgebert.pipeline.stages.random_weights import write_random

            return write_random(source.entry, self.labels, 0, _fresh(out / "checkpoint"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            checkpoint = load_folder(
                source.folder,
                source.name,
                allow_pickle=source.allow_pickle,
                work=out,
                require_head=self.require_head,
            )
        notes = [str(warning.message) for warning in caught if warning.category is UserWarning]
        (out / _NOTES).write_text(json.dumps(notes), encoding="utf-8")
        if checkpoint.path == source.folder:
            (out / _IN_PLACE).write_text(str(source.folder), encoding="utf-8")
        return checkpoint

    def result(self, out: Path) -> Checkpoint:
        """The checkpoint that an earlier call left."""
        in_place = out / _IN_PLACE
        if in_place.exists():
            return Checkpoint(Path(in_place.read_text(encoding="utf-8")), self.source.name)
        return Checkpoint(out / "checkpoint", self.source.name)

    def notes(self, out: Path) -> tuple[str, ...]:
        """What an earlier call found odd, for the report."""
        notes = out / _NOTES
        return tuple(json.loads(notes.read_text(encoding="utf-8"))) if notes.exists() else ()


def load_folder(
    folder: Path, name: str, *, allow_pickle: bool, work: Path, require_head: bool = True
) -> Checkpoint:
    """A local folder as a checkpoint, in place where it can be; see `Load`."""
    config = _folder_config(folder)
    files = find_weights(folder, allow_pickle)
    source = Checkpoint(folder, name)
    try:
        vocab_size = int(source.config.vocab_size)
    except InputError:
        raise
    except Exception as error:  # transformers validates fields with exceptions of its own
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"not a valid configuration: {reason}", str(folder / "config.json")
        ) from error
    tokenizer = read_tokenizer(folder, vocab_size)
    if require_head:
        _ = source.labels
    checkpoint = source
    if files != (folder / SAFETENSORS,) or not (folder / TOKENIZER).exists():
        checkpoint = Checkpoint(_fresh(work / "checkpoint"), name)
        _write_json(config, checkpoint.path / "config.json")
        if files == (folder / SAFETENSORS,):
            shutil.copyfile(files[0], checkpoint.path / SAFETENSORS)
        else:
            write_single(files, checkpoint.path / SAFETENSORS)
        tokenizer.save(str(checkpoint.path / TOKENIZER))
    if require_head:
        _check_tensors(checkpoint, ", ".join(str(file) for file in files[:1]))
    return checkpoint


def has_random_weights(checkpoint: Checkpoint) -> bool:
    """True where the weights were made up, so that accuracy means nothing."""
    return bool(getattr(checkpoint.config, "edgebert_random_weights", False))


def count_parameters(checkpoint: Checkpoint) -> int:
    """Parameters of the checkpoint's classifier; what layers share counts once."""
    model, _ = _from_pretrained(checkpoint, device_map="meta", ignore_mismatched_sizes=True)
    return sum(parameter.numel() for parameter in model.parameters())


def load_model(checkpoint: Checkpoint) -> Any:
    """The checkpoint's classifier: fp32, eval mode, eager attention.

    Raises:
        InputError: a tensor of the model is missing in the weights, the classifier head for one.
    """
    model, info = _from_pretrained(checkpoint)
    _refuse_missing(model, info["missing_keys"], str(checkpoint.path / SAFETENSORS))
    return model.eval()


def _from_pretrained(checkpoint: Checkpoint, **arguments: Any) -> tuple[Any, dict[str, Any]]:
    """The classifier, and which tensors were missing."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification
    from transformers.utils import logging

    from edgebert.pipeline.stages.pruned_model import FIELD, pruned_class

    heads = {"token": AutoModelForTokenClassification}
    auto: Any = heads.get(checkpoint.task, AutoModelForSequenceClassification)
    if hasattr(checkpoint.config, FIELD):  # the folder's own copy of this code is not run
        auto = pruned_class(checkpoint.config)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model, info = auto.from_pretrained(
        checkpoint.path,
        local_files_only=True,
        use_safetensors=True,
        dtype=torch.float32,
        attn_implementation="eager",
        output_loading_info=True,
        **arguments,
    )
    return model, info


def _check_tensors(checkpoint: Checkpoint, where: str) -> None:
    """Compare names and shapes of the tensors with what the configuration asks."""
    model, info = _from_pretrained(checkpoint, device_map="meta", ignore_mismatched_sizes=True)
    _refuse_missing(model, info["missing_keys"], where)
    for name, stored, asked in sorted(info["mismatched_keys"]):
        raise InputError(
            f"{name} is {list(stored)} in the weights, {list(asked)} by config.json",
            where,
            "give the config.json that was saved with these weights",
        )
    _check_copies(checkpoint, model, sorted(info["unexpected_keys"]), where)


def _check_copies(
    checkpoint: Checkpoint, model: Any, unexpected: Sequence[str], where: str
) -> None:
    """Refuse copies of a shared layer (one for each depth) that are not equal to it."""
    from safetensors.torch import load_file

    prefix = f"{checkpoint.family.layer_path}."
    groups = len(dotted(model, checkpoint.family.layer_path))
    copies = [name for name in unexpected if name.startswith(prefix)]
    if not copies or groups >= checkpoint.config.num_hidden_layers:
        return
    tensors = load_file(checkpoint.path / SAFETENSORS)
    for name in copies:
        number, _, rest = name.removeprefix(prefix).partition(".")
        shared = [tensors.get(f"{prefix}{group}.{rest}") for group in range(groups)]
        if not any(other is not None and tensors[name].equal(other) for other in shared):
            raise InputError(
                f"{name} differs from the layer that config.json says is shared by all depths",
                where,
                f"{number} is a layer of its own: say so with num_hidden_groups, or remove it",
            )


def _refuse_missing(model: Any, missing: Sequence[str], where: str) -> None:
    """Refuse weights without some of the model's tensors."""
    if not missing:
        return
    encoder = sorted(key for key in missing if key.startswith(f"{model.base_model_prefix}."))
    listed = encoder or sorted(missing)
    rest = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    names = ", ".join(listed[:4]) + rest
    if encoder:
        raise InputError(f"the weights lack {names}", where, "save or download the model again")
    raise InputError(f"no trained classifier head: the weights lack {names}", where, HEAD_CURE)


def _folder_config(folder: Path) -> dict[str, Any]:
    """config.json of a folder whose family is known."""
    file = folder / "config.json"
    if not folder.is_dir():
        raise InputError("no such folder", str(folder))
    if not file.exists():
        raise InputError(
            "no config.json", str(folder), "give a folder that `save_pretrained` wrote"
        )
    return read_config(file)


def read_config(file: Path) -> dict[str, Any]:
    """A configuration file whose family is known.

    Raises:
        InputError: no JSON, no `model_type`, or one without a family.
    """
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"not readable as JSON: {error}", str(file)) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise InputError("no model_type", str(file), "it names the architecture, such as bert")
    find_family(config["model_type"], str(file))
    return config


def _write_json(content: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _fresh(folder: Path) -> Path:
    """An empty folder; what an interrupted run left is removed."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder
