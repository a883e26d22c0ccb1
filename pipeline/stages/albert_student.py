"""The albert-like student: one shared layer, factorized embeddings, a trimmed vocabulary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AlbertConfig, AlbertForSequenceClassification

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint, dotted
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.trim import trim, used_tokens
from edgebert.targets.errors import InputError

# Where a BERT layer's modules are in an ALBERT layer.
_LAYER_MODULES = {
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.dense": "attention.dense",
    "attention.output.LayerNorm": "attention.LayerNorm",
    "intermediate.dense": "ffn",
    "output.dense": "ffn_output",
    "output.LayerNorm": "full_layer_layer_norm",
}
# Modules of a BERT that an ALBERT has too: in the encoder, and beside it.
_ENCODER_MODULES = ("embeddings.position_embeddings", "embeddings.LayerNorm", "pooler.dense")
SAMPLE = 4000  # texts that the principal components are computed from


def albert_like(
    teacher: Checkpoint,
    rows: Sequence[Row],
    out: Path,
    *,
    embedding_size: int = 128,
    vocabulary_size: int = 8000,
    max_positions: int = 128,
) -> Checkpoint:
    """An ALBERT (Lan et al. 2019, arXiv:1909.11942) whose parts are the teacher's.

    The vocabulary is trimmed to the pieces of `rows`; the embeddings are reduced to
    `embedding_size` by a principal component analysis of the teacher's embedding output on `rows`,
    so that frequent words lose least. There is one layer group for each layer of the teacher:
    `Distill` pulls them together into one.

    Args:
        teacher: a classifier of BERT's layout.
        rows: texts that the student will see.
        out: folder of the student.
        embedding_size: E, the size of a stored word vector.
        vocabulary_size: V, most entries to keep.
        max_positions: longest input in tokens.

    Raises:
        InputError: the teacher is laid out in another way, or there is no text.
    """
    model = load_model(teacher)
    encoder: Any = getattr(model, model.base_model_prefix)
    layers: Any = dotted(model, teacher.family.layer_path)
    _check_layout(teacher, encoder, layers, model)
    texts = [text for row in rows for text in (row.text, row.text_pair) if text is not None]
    if not texts:
        raise InputError("no text to choose the student's vocabulary by", "", "give train rows")
    keep = used_tokens(teacher.tokenizer, texts, vocabulary_size)
    tokenizer = trim(teacher.tokenizer, keep)
    old = teacher.config
    config = AlbertConfig(
        vocab_size=len(keep),
        embedding_size=min(embedding_size, int(old.hidden_size)),
        hidden_size=old.hidden_size,
        num_hidden_layers=old.num_hidden_layers,
        num_hidden_groups=old.num_hidden_layers,
        num_attention_heads=old.num_attention_heads,
        intermediate_size=old.intermediate_size,
        hidden_act=old.hidden_act,
        max_position_embeddings=min(max_positions, teacher.max_length),
        type_vocab_size=old.type_vocab_size,
        layer_norm_eps=old.layer_norm_eps,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout_prob=0.1,
        pad_token_id=keep.index(int(old.pad_token_id or 0)),
        bos_token_id=tokenizer.token_to_id("[CLS]"),
        eos_token_id=tokenizer.token_to_id("[SEP]"),
        id2label=old.id2label,
        label2id=old.label2id,
        problem_type=old.problem_type,
    )
    student: Any = AlbertForSequenceClassification(config)
    sample = teacher.tokenizer.encode_batch(texts[:: max(1, len(texts) // SAMPLE)])
    ids = [encoding.ids[: teacher.max_length] for encoding in sample]
    with torch.no_grad():
        _reduce_embeddings(encoder.embeddings, student.albert, keep, [each for each in ids if each])
        groups = student.albert.encoder.albert_layer_groups
        for layer, group in zip(layers, groups, strict=True):
            for source, goal in _LAYER_MODULES.items():
                module: Any = dotted(group.albert_layers[0], goal)
                module.load_state_dict(layer.get_submodule(source).state_dict())
        student.albert.pooler.load_state_dict(encoder.pooler.dense.state_dict())
        student.classifier.load_state_dict(model.classifier.state_dict())
    return save_checkpoint(student, tokenizer, out, f"albert-like {teacher.name}")


def _check_layout(teacher: Checkpoint, encoder: Any, layers: Any, model: Any) -> None:
    """Refuse a teacher whose parts have no place in an ALBERT."""
    has = {name for name, _ in encoder.named_modules()} | {
        name for name, _ in model.named_modules()
    }
    inside = {name for name, _ in layers[0].named_modules()}
    missing = [name for name in (*_ENCODER_MODULES, "classifier") if name not in has]
    missing += [name for name in _LAYER_MODULES if name not in inside]
    if not missing and isinstance(model.classifier, nn.Linear):
        return
    raise InputError(
        f"an albert-like student takes its parts from a BERT; {teacher.family.model_type} "
        f"has no {', '.join(missing[:2]) or 'linear classifier'}",
        str(teacher.path),
        "give a BERT teacher, or the student distilbert-like or tinybert-4",
    )


def _reduce_embeddings(
    source: Any, student: Any, keep: Sequence[int], sample: Sequence[Sequence[int]]
) -> None:
    """Fill the student's embedding tables and its projection E -> H from the teacher's.

    Args:
        source: the teacher's embeddings.
        student: the ALBERT encoder.
        keep: ids of the teacher that the student has, in the student's order.
        sample: token ids of texts.
    """
    goal: Any = student.embeddings.eval()
    outputs = torch.cat([source(torch.tensor([ids]))[0] for ids in sample])  # [tokens, H]
    centered = (outputs - outputs.mean(dim=0)).numpy()
    # Over all H directions: fewer tokens than E leave some of them out.
    components = np.linalg.svd(centered.T @ centered)[0].T[: goal.word_embeddings.embedding_dim]
    basis = torch.from_numpy(components).T * source.LayerNorm.weight[:, None]  # [H, E]
    goal.word_embeddings.weight.copy_(source.word_embeddings.weight[list(keep)] @ basis)
    positions = goal.position_embeddings.num_embeddings
    goal.position_embeddings.weight.copy_(source.position_embeddings.weight[:positions] @ basis)
    goal.token_type_embeddings.weight.copy_(source.token_type_embeddings.weight @ basis)
    # The student normalizes in E dimensions, the teacher in H: least squares maps what comes out
    # of the one to the other.
    new_ids = {old: new for new, old in enumerate(keep)}
    known = [[new_ids.get(token, 0) for token in ids][:positions] for ids in sample]
    reduced = torch.cat([goal(torch.tensor([ids]))[0] for ids in known])  # [tokens, E]
    wanted = torch.cat([source(torch.tensor([ids[:positions]]))[0] for ids in sample])
    with_bias = torch.cat([reduced, torch.ones(len(reduced), 1)], dim=1)
    # The driver that takes a matrix of any rank: a small sample does not fill E dimensions.
    solution = torch.linalg.lstsq(with_bias, wanted, driver="gelsd").solution  # [E + 1, H]
    mapping: Any = student.encoder.embedding_hidden_mapping_in
    mapping.weight.copy_(solution[:-1].T)
    mapping.bias.copy_(solution[-1])
