"""A catalogue entry at its real size with random weights: right for sizes and speeds only."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgebert.calibration.dataset import shipped_folders
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.catalogue import CatalogueEntry
from edgebert.pipeline.families import find_family

INITIAL_DEVIATION = 0.02  # BERT's own initializer_range


def write_random(entry: CatalogueEntry, labels: Sequence[str], seed: int, out: Path) -> Checkpoint:
    """Leave a seeded random classifier in `out`, marked `edgebert_random_weights`.

    No parameter is left at a value that a converter may fold away, as none of a trained one is.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    from edgebert.pipeline.stages.checkpoints import save_checkpoint

    config = AutoConfig.for_model(
        entry.model_type,
        **entry.config,
        id2label=dict(enumerate(labels)),
        label2id={name: index for index, name in enumerate(labels)},
        edgebert_random_weights=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForSequenceClassification.from_config(config)
        for parameter in model.parameters():
            if parameter.dim() == 1:  # biases and LayerNorms, which start as zeros and ones
                parameter.data += INITIAL_DEVIATION * torch.randn_like(parameter)
    pads_left = find_family(entry.model_type).pads_left
    tokenizer = make_tokenizer(int(config.vocab_size), int(config.pad_token_id or 0), pads_left)
    return save_checkpoint(model, tokenizer, out, entry.name)


def make_tokenizer(vocab_size: int, pad_id: int, cls_last: bool) -> Any:
    """A WordPiece tokenizer with exactly `vocab_size` ids, frequent English words among them."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    characters = string.ascii_lowercase + string.digits
    pieces = [*characters, *(f"##{c}" for c in characters), *string.punctuation]
    specials = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    room = vocab_size - 1 - len(specials)
    tokens = [*specials, *dict.fromkeys([*pieces, *_frequent_words()[:room]])][: vocab_size - 1]
    tokens += [f"[unused{index}]" for index in range(vocab_size - 1 - len(tokens))]
    tokens.insert(pad_id, "[PAD]")
    ids = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP] [CLS]:2" if cls_last else "[CLS] $A [SEP]",
        pair="$A [SEP] $B:1 [SEP]:1 [CLS]:2" if cls_last else "[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.add_special_tokens(["[PAD]", *specials])
    return tokenizer


def _frequent_words() -> list[str]:
    """Words of the shipped training texts, most frequent first."""
    text = (shipped_folders()["clinc150"] / "train.jsonl").read_text(encoding="utf-8").lower()
    counts = Counter(re.findall(r"[a-z]{2,}", text))
    return sorted(counts, key=lambda word: (-counts[word], word))
