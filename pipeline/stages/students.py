"""Students by name, by configuration or by folder: what a distillation starts from."""

import copy
import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn
from transformers import AutoConfig, AutoModelForSequenceClassification, BertConfig

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.pipeline.source import find_source
from edgebert.pipeline.stages.albert_student import albert_like
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.finetune import PROBLEM_TYPES
from edgebert.pipeline.stages.layer_maps import resolve_layer_map
from edgebert.pipeline.stages.load import Load, load_model, read_config
from edgebert.pipeline.stages.narrow_student import can_narrow, narrow
from edgebert.pipeline.stages.pruned_model import FIELD
from edgebert.pipeline.stages.weights import SAFETENSORS
from edgebert.pipeline.training_settings import StudentSettings
from edgebert.targets.errors import InputError

__all__ = ["STUDENTS", "albert_like", "make_student"]


def make_student(
    student: str,
    teacher: Checkpoint,
    rows: Sequence[Row],
    out: Path,
    settings: StudentSettings | None = None,
    *,
    seed: int = 0,
    allow_pickle: bool = False,
) -> Checkpoint:
    """Make the student that a distillation starts from.

    Args:
        student: a name of `STUDENTS`; a configuration file that ends in .json; a catalogue name, a
            folder or a hub id.
        teacher: whose labels, and unless it has its own whose tokenizer, it gets.
        rows: texts that it will see.
        out: folder of the student.
        settings: of the student.
        seed: of the weights that are drawn.
        allow_pickle: read pytorch_model.bin where there is no model.safetensors.

    Raises:
        InputError: unknown name, a malformed configuration, or a folder with a head for other
            labels.
        MachineError: a hub model that is not at hand and cannot be fetched.
    """
    settings = settings or StudentSettings()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if student == "albert-like":
            return albert_like(
                teacher,
                rows,
                out,
                embedding_size=settings.embedding_size,
                vocabulary_size=settings.vocabulary_size,
            )
        texts = [row.text for row in rows]
        if student in _BY_NAME:
            return _BY_NAME[student](teacher, out, texts)
        if student.endswith(".json"):
            return from_configuration(Path(student), teacher, out, texts)
        return from_checkpoint(student, teacher, out, allow_pickle)


def distilbert_like(teacher: Checkpoint, out: Path, texts: Sequence[str] = ()) -> Checkpoint:
    """Every second layer of the teacher (DistilBERT, Sanh et al. 2019, arXiv:1910.01108).

    It stays of the teacher's family: the student of a RoBERTa is a RoBERTa. Of each pair of layers
    the second is taken, since the head reads the last one. Where the first layer is built in
    another way than the others (ModernBERT) it is the first of each pair.
    """
    config = copy.deepcopy(teacher.config)
    depth = int(config.num_hidden_layers)
    picked = list(range(depth - 1, -1, -2))[::-1]
    if types := getattr(config, "layer_types", None):  # ModernBERT: which layers look far
        picked = list(range(0, depth, 2))
        config.layer_types = [types[index] for index in picked]
    config.num_hidden_layers = len(picked)
    model = _build(config, teacher.path)
    source = load_model(teacher)
    if can_narrow(teacher, source, model, texts):
        pairs = [(ours, theirs + 1) for ours, theirs in enumerate(picked, start=1)]
        narrow(teacher, source, model, texts, pairs)
    else:
        _inherit(model, teacher, picked)
    return save_checkpoint(model, teacher.tokenizer, out, f"distilbert-like {teacher.name}")


def tinybert(
    teacher: Checkpoint,
    out: Path,
    texts: Sequence[str] = (),
    layers: int = 4,
    hidden_size: int = 312,
    intermediate_size: int = 1200,
    heads: int = 12,
) -> Checkpoint:
    """A BERT of 4 layers of 312 (TinyBERT-4, Jiao et al. 2019, arXiv:1909.10351, section 4.1).

    It is the teacher cut to that size where the teacher is a BERT of as many heads. Else its layers
    are random, and its word vectors the principal components of the teacher's.
    """
    reads = teacher.tokenizer.encode("a", "a").type_ids
    old = teacher.config
    config = BertConfig(
        vocab_size=old.vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=intermediate_size,
        max_position_embeddings=min(512, teacher.max_length),
        type_vocab_size=max(2, *(kind + 1 for kind in reads)),
        pad_token_id=old.pad_token_id or 0,
        **_labels_of(teacher),
    )
    model = _build(config, teacher.path)
    source = load_model(teacher)
    if can_narrow(teacher, source, model, texts):
        narrow(teacher, source, model, texts)
    else:
        words: Any = dotted(source, teacher.family.embedding_path)
        goal: Any = model.bert.embeddings.word_embeddings
        with torch.no_grad():
            goal.weight.copy_(_principal_components(words.weight, hidden_size))
    return save_checkpoint(model, teacher.tokenizer, out, f"tinybert-{layers} {teacher.name}")


def from_configuration(
    file: Path, teacher: Checkpoint, out: Path, texts: Sequence[str] = ()
) -> Checkpoint:
    """The student that a configuration file describes.

    Vocabulary, padding and labels are the teacher's, whatever the file says. A BERT is the teacher
    cut to its size where that can be done. Another student of the teacher's family starts from its
    weights where the shapes agree, its layers from the teacher's layers that it learns from by the
    uniform map; the rest is random.
    """
    fields = read_config(file)
    inherited = {
        "vocab_size": teacher.config.vocab_size,
        "pad_token_id": teacher.config.pad_token_id or 0,
        **_labels_of(teacher),
    }
    dropped = ("model_type", "architectures", "num_labels")
    kept = {name: value for name, value in fields.items() if name not in dropped}
    try:
        config = AutoConfig.for_model(fields["model_type"], **(kept | inherited))
    except Exception as error:  # transformers validates fields with exceptions of its own
        raise _malformed(error, file) from error
    model = _build(config, file)
    source = load_model(teacher)
    if isinstance(config, BertConfig) and can_narrow(teacher, source, model, texts):
        narrow(teacher, source, model, texts)
    elif type(config) is type(teacher.config):
        pairs = resolve_layer_map(
            "uniform", int(config.num_hidden_layers), int(teacher.config.num_hidden_layers)
        )
        _inherit(model, teacher, [layer - 1 for _, layer in pairs])
    return save_checkpoint(model, teacher.tokenizer, out, file.stem)


def from_checkpoint(
    student: str, teacher: Checkpoint, out: Path, allow_pickle: bool = False
) -> Checkpoint:
    """A pretrained student with its own tokenizer; it gets a head where it has none."""
    try:
        source = find_source(student, allow_pickle=allow_pickle)
    except InputError as error:
        near = difflib.get_close_matches(student, STUDENTS, n=1, cutoff=0.5)
        if not near:
            raise
        raise InputError(f"unknown student '{student}'", "", f"nearest: {near[0]}") from error
    out.mkdir(parents=True, exist_ok=True)
    found = Load(source, require_head=False)(out)
    config = copy.deepcopy(found.config)
    if _has_head(found):
        return found
    for name, value in _labels_of(teacher).items():
        setattr(config, name, value)
    model = AutoModelForSequenceClassification.from_pretrained(
        found.path, config=config, local_files_only=True, dtype=torch.float32
    )
    return save_checkpoint(model, found.tokenizer, out / "with-head", found.name)


def _has_head(checkpoint: Checkpoint) -> bool:
    """Whether the weights hold a classifier; without one its labels mean nothing."""
    if hasattr(checkpoint.config, FIELD):  # only classifiers are pruned
        return True
    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(checkpoint.config)
    prefix = f"{model.base_model_prefix}."
    wanted = {name for name, _ in model.named_parameters() if not name.startswith(prefix)}
    with safe_open(checkpoint.path / SAFETENSORS, framework="pt") as stored:
        return wanted <= set(stored.keys())


def _labels_of(teacher: Checkpoint) -> dict[str, Any]:
    """Fields of a configuration that make a head for the teacher's labels."""
    return {
        "id2label": dict(enumerate(teacher.labels)),
        "label2id": {name: index for index, name in enumerate(teacher.labels)},
        "problem_type": PROBLEM_TYPES.get(teacher.task),
    }


def _build(config: Any, where: Path) -> Any:
    """A classifier with random weights.

    Raises:
        InputError: the configuration contradicts itself.
    """
    width, heads = int(config.hidden_size), int(config.num_attention_heads)
    if width % heads:
        raise InputError(
            f"{heads} attention heads do not divide the hidden size {width}",
            str(where),
            "change num_attention_heads or hidden_size",
        )
    try:
        return AutoModelForSequenceClassification.from_config(config).eval()
    except Exception as error:  # each architecture checks its fields in its own way
        raise _malformed(error, where) from error


def _malformed(error: Exception, where: Path) -> InputError:
    return InputError(
        f"not a valid configuration: {' '.join(str(error).split())[:200]}", str(where)
    )


def _inherit(model: nn.Module, teacher: Checkpoint, picked: Sequence[int]) -> None:
    """Copy the teacher's tensors of the same name and shape; layer i is the teacher's `picked[i]`.

    A family whose list of layers is shorter than its depth (ALBERT) shares them: they stay.
    """
    source = load_model(teacher)
    prefix = f"{teacher.family.layer_path}."
    listed: Any = dotted(source, teacher.family.layer_path)
    shared = len(listed) != int(teacher.config.num_hidden_layers)
    tensors, goals = source.state_dict(), model.state_dict()
    with torch.no_grad():
        for name, goal in goals.items():
            origin = name
            if name.startswith(prefix) and not shared:
                index, _, rest = name.removeprefix(prefix).partition(".")
                origin = f"{prefix}{picked[int(index)]}.{rest}"
            if origin in tensors and tensors[origin].shape == goal.shape:
                goal.copy_(tensors[origin])


def _principal_components(vectors: torch.Tensor, size: int) -> torch.Tensor:
    """Vectors [n, width] in the basis of their first `size` principal components, [n, size].

    Narrower vectors are filled up with zeros.
    """
    basis = torch.linalg.svd(vectors - vectors.mean(dim=0), full_matrices=False).Vh[:size]
    reduced = vectors @ basis.T
    return nn.functional.pad(reduced, (0, size - reduced.shape[1]))


_BY_NAME: dict[str, Callable[[Checkpoint, Path, Sequence[str]], Checkpoint]] = {
    "distilbert-like": distilbert_like,
    "tinybert-4": tinybert,
}
STUDENTS = ("albert-like", *_BY_NAME)
