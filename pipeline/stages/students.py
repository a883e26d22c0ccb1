"""Students by name: an untrained or half-trained model that starts from its teacher's weights."""

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
from edgebert.pipeline.stages.vocabulary import trim_tokenizer, used_tokens
from edgebert.targets.errors import InputError

# Where a BERT layer's modules are in an ALBERT layer.
_ALBERT_MODULES = {
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.dense": "attention.dense",
    "attention.output.LayerNorm": "attention.LayerNorm",
    "intermediate.dense": "ffn",
    "output.dense": "ffn_output",
    "output.LayerNorm": "full_layer_layer_norm",
}


def albert_like(
    teacher: Checkpoint,
    rows: Sequence[Row],
    out: Path,
    *,
    embedding_size: int = 128,
    vocabulary_size: int = 8000,
    max_positions: int = 128,
) -> Checkpoint:
    """An ALBERT (Lan et al. 2019) whose parts are the teacher's, ready to distill.

    The vocabulary is trimmed to the pieces of `rows`; the embeddings are reduced to `embedding_size` by a principal
    component analysis of the teacher's embedding output on `rows`, so that frequent words lose least. There is one
    layer group for each layer of the teacher: `Distill` pulls them together into one.

    Args:
        teacher: a BERT classifier.
        rows: texts that the student will see.
        out: folder of the student.
        embedding_size: E, the size of a stored word vector.
        vocabulary_size: V, most entries to keep.
        max_positions: longest input in tokens.

    Raises:
        InputError: the teacher is no BERT.
    """
    if teacher.config.model_type != "bert":
        raise InputError(
            f"an albert-like student starts from a BERT teacher, not {teacher.config.model_type}",
            str(teacher.path),
        )
    model = load_model(teacher)
    texts = [text for row in rows for text in (row.text, row.text_pair) if text is not None]
    keep = used_tokens(teacher.tokenizer, texts, vocabulary_size)
    tokenizer = trim_tokenizer(teacher.tokenizer, keep)
    old = teacher.config
    config = AlbertConfig(
        vocab_size=len(keep),
        embedding_size=embedding_size,
        hidden_size=old.hidden_size,
        num_hidden_layers=old.num_hidden_layers,
        num_hidden_groups=old.num_hidden_layers,
        num_attention_heads=old.num_attention_heads,
        intermediate_size=old.intermediate_size,
        hidden_act=old.hidden_act,
        max_position_embeddings=max_positions,
        layer_norm_eps=old.layer_norm_eps,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout_prob=0.1,
        pad_token_id=tokenizer.token_to_id("[PAD]"),
        bos_token_id=tokenizer.token_to_id("[CLS]"),
        eos_token_id=tokenizer.token_to_id("[SEP]"),
        id2label=old.id2label,
        label2id=old.label2id,
    )
    student = AlbertForSequenceClassification(config)
    sample = teacher.tokenizer.encode_batch(texts[:: max(1, len(texts) // 4000)])
    with torch.no_grad():
        _reduce_embeddings(model, student, keep, [encoding.ids for encoding in sample])
        layers = dotted(model, teacher.family.layer_path)
        groups = student.albert.encoder.albert_layer_groups
        for layer, group in zip(layers, groups, strict=True):
            for source, goal in _ALBERT_MODULES.items():
                module: Any = dotted(group.albert_layers[0], goal)
                module.load_state_dict(layer.get_submodule(source).state_dict())
        student.albert.pooler.load_state_dict(model.bert.pooler.dense.state_dict())
        student.classifier.load_state_dict(model.classifier.state_dict())
    return save_checkpoint(student, tokenizer, out, f"albert-like {teacher.name}")


def _reduce_embeddings(
    teacher: nn.Module, student: nn.Module, keep: list[int], sample: list[list[int]]
) -> None:
    """Fill the student's embedding tables and its projection E -> H from the teacher's embeddings."""
    source: Any = teacher.bert.embeddings
    goal: Any = student.albert.embeddings
    outputs = torch.cat([source(torch.tensor([ids]))[0] for ids in sample])  # [tokens, H]
    centered = (outputs - outputs.mean(dim=0)).numpy()
    components = np.linalg.svd(centered, full_matrices=False)[2][
        : goal.word_embeddings.embedding_dim
    ]
    basis = torch.from_numpy(components).T * source.LayerNorm.weight[:, None]  # [H, E]
    goal.word_embeddings.weight.copy_(source.word_embeddings.weight[keep] @ basis)
    positions = goal.position_embeddings.num_embeddings
    goal.position_embeddings.weight.copy_(source.position_embeddings.weight[:positions] @ basis)
    goal.token_type_embeddings.weight.copy_(source.token_type_embeddings.weight @ basis)
    # The student normalizes in E dimensions, the teacher in H: least squares maps what comes out of the one to
    # the other.
    new_ids = {old: new for new, old in enumerate(keep)}
    known = [[new_ids.get(token, 0) for token in ids] for ids in sample]
    reduced = torch.cat([goal.eval()(torch.tensor([ids]))[0] for ids in known])  # [tokens, E]
    with_bias = torch.cat([reduced, torch.ones(len(reduced), 1)], dim=1)
    solution = torch.linalg.lstsq(with_bias, outputs).solution  # [E + 1, H]
    mapping: Any = student.albert.encoder.embedding_hidden_mapping_in
    mapping.weight.copy_(solution[:-1].T)
    mapping.bias.copy_(solution[-1])
