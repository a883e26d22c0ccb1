"""Augmentation: words that a masked language model puts in, and models that have none."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.families import all_families
from edgebert.pipeline.stages.augment import Augment, read_texts
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.targets.errors import InputError

TinyCheckpoint = Callable[..., Checkpoint]
ROWS = tuple(
    Row(f"{start} the film was good, and the music was not bad {end}", "good")
    for start in ("today", "play", "book")
    for end in ("in london", "at 7 pm")
)
STAGE = Augment(copies=2, share=0.4, max_length=64, seed=3)


def language_model(tiny_checkpoint: TinyCheckpoint, folder: Path, model_type: str) -> Checkpoint:
    """A tiny masked language model with the tokenizer of the tiny checkpoints."""
    plain = tiny_checkpoint(model_type, folder / "classifier")
    config = AutoConfig.from_pretrained(plain.path)
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(config)
    return save_checkpoint(model, plain.tokenizer, folder / "language-model", model_type)


@pytest.mark.parametrize("model_type", sorted(set(all_families()) - {"xlnet"}))
def test_words_are_replaced_by_words(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    model = language_model(tiny_checkpoint, tmp_path, model_type)
    STAGE(model, ROWS, tmp_path)
    texts = read_texts(tmp_path)
    assert len(texts) == 2 * len(ROWS)
    originals = [row.text.split() for row in ROWS]
    for row in texts:
        assert row.label is None
        words = row.text.split()
        same = [original for original in originals if len(original) == len(words)]
        changed = min(sum(a != b for a, b in zip(words, each, strict=True)) for each in same)
        assert 1 <= changed <= 7, row.text
        assert "mask" not in row.text.lower() and "#" not in row.text


def test_the_seed_decides(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> None:
    model = language_model(tiny_checkpoint, tmp_path, "bert")
    found = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        (tmp_path / name).mkdir()
        Augment(copies=1, share=0.4, max_length=64, seed=seed)(model, ROWS, tmp_path / name)
        found.append(read_texts(tmp_path / name))
    assert found[0] == found[1] != found[2]


def test_pairs_keep_their_parts(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> None:
    model = language_model(tiny_checkpoint, tmp_path, "bert")
    rows = (Row("the film was good", "yes", "was the music good"),)
    Augment(copies=1, share=1.0, max_length=64, seed=0)(model, rows, tmp_path)
    (made,) = read_texts(tmp_path)
    assert len(made.text.split()) == 4 and len(str(made.text_pair).split()) == 4
    assert made.text != rows[0].text and made.text_pair != rows[0].text_pair


@pytest.mark.parametrize("model_type", ["bert", "xlnet"])
def test_a_model_without_the_head_is_refused(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    with pytest.raises(InputError, match="no head of a masked language model"):
        STAGE(tiny_checkpoint(model_type, tmp_path / "c"), ROWS, tmp_path)
    assert not (tmp_path / "texts.jsonl").exists()
