"""Trimmed vocabularies of every kind: kept texts read as before, and any text can be spelled."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.recipe import PruneSettings
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.prune import Prune
from edgebert.pipeline.stages.random_weights import make_tokenizer
from edgebert.pipeline.stages.tokenizer_files import read_tokenizer
from edgebert.pipeline.stages.trim import tokens_to_keep, trim
from edgebert.targets.errors import InputError

UNIGRAM = Path(__file__).parent / "data" / "unigram.model"
TEXTS = (
    "what is the weather today",
    "please play some music",
    "transfer money to my bank account",
    "a good film",
)
OTHER = "an Unseen sentence, with 3 numbers: 1024!"


@cache
def wordpiece() -> Tokenizer:
    """BERT's."""
    tokenizer: Tokenizer = make_tokenizer(600, 0, cls_last=False)
    return tokenizer


@cache
def unigram() -> Tokenizer:
    """XLM-R's, from a SentencePiece model: the ids are those of the pieces plus one."""
    with TemporaryDirectory() as folder:
        shutil.copyfile(UNIGRAM, Path(folder) / "sentencepiece.bpe.model")
        (Path(folder) / "config.json").write_text('{"model_type": "xlm-roberta"}')
        tokenizer: Tokenizer = read_tokenizer(Path(folder), 10**6)
        return tokenizer


def bpe(text: str = " ".join((*TEXTS, OTHER, "the weather is better than the other"))) -> Tokenizer:
    """RoBERTa's: byte-level, with merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        [text],
        trainers.BpeTrainer(
            vocab_size=360,
            special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "WordPiece": wordpiece,
    "Unigram": unigram,
    "BPE": cache(bpe),
}


@cache
def trimmed(kind: str) -> tuple[Tokenizer, Tokenizer, list[int]]:
    """The tokenizer, the same trimmed to `TEXTS`, and the ids that were kept."""
    tokenizer = KINDS[kind]()
    keep = tokens_to_keep(tokenizer, TEXTS, ())
    return tokenizer, trim(tokenizer, keep), keep


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [*TEXTS, (TEXTS[0], TEXTS[1])])
def test_given_texts_are_cut_as_before(kind: str, texts: str | tuple[str, str]) -> None:
    whole, small, keep = trimmed(kind)
    pair = (texts,) if isinstance(texts, str) else texts
    before, after = whole.encode(*pair), small.encode(*pair)
    assert after.tokens == before.tokens
    assert [keep[token] for token in after.ids] == before.ids
    assert (after.type_ids, after.offsets) == (before.type_ids, before.offsets)
    assert after.special_tokens_mask == before.special_tokens_mask


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_smaller_and_special_tokens_stay(kind: str) -> None:
    whole, small, keep = trimmed(kind)
    assert len(keep) == small.get_vocab_size() < whole.get_vocab_size()
    assert sorted(small.get_vocab().values()) == list(range(len(keep)))
    added = {token.content for token in whole.get_added_tokens_decoder().values()}
    assert added <= {token.content for token in small.get_added_tokens_decoder().values()}
    again = Tokenizer.from_str(small.to_str())
    assert again.encode(OTHER).ids == small.encode(OTHER).ids


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.one_of(st.text(max_size=40), st.text("abcdehimtuw .,19", max_size=40)))
def test_any_text_is_spelled_or_cut_as_before(kind: str, text: str) -> None:
    whole, small, keep = trimmed(kind)
    before, after = whole.encode(text), small.encode(text)
    assert not after.ids or max(after.ids) < len(keep)
    if set(before.ids) <= set(keep):
        assert [keep[token] for token in after.ids] == before.ids
    else:  # pieces that went are spelled in characters, of which none got lost
        unknown = [token for token in ("[UNK]", "<unk>") if whole.token_to_id(token) is not None]
        if max(map(ord, text), default=0) < 0x2E80:  # nothing that could become an ideograph
            for token in unknown:
                assert after.tokens.count(token) <= before.tokens.count(token)


def test_an_xlm_r_gives_the_same_logits(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    """Its positions count from the padding token, whose id has to stay."""
    folder = tmp_path / "whole"
    whole = tiny_checkpoint("xlm-roberta", folder, vocab_size=unigram().get_vocab_size())
    unigram().save(str(folder / "tokenizer.json"))
    data = Dataset("texts", tuple(Row(text) for text in TEXTS), (), (), "0")
    pruned = Prune(PruneSettings(vocabulary=True))(whole, data, tmp_path / "small")
    assert pruned.config.pad_token_id == whole.config.pad_token_id == 1
    files = [checkpoint.path / "model.safetensors" for checkpoint in (pruned, whole)]
    assert files[0].stat().st_size < files[1].stat().st_size
    for text in (*TEXTS, f"{TEXTS[3]} {TEXTS[3]}"):
        logits = []
        for checkpoint in (whole, pruned):
            ids = torch.tensor([[*checkpoint.tokenizer.encode(text).ids, 1, 1]])
            with torch.no_grad():
                logits.append(load_model(checkpoint)(ids, attention_mask=ids != 1).logits)
        assert (logits[0] - logits[1]).abs().max() <= 1e-6


def test_an_ideograph_is_a_word() -> None:
    pieces = ["[UNK]", "[CLS]", "[SEP]", "\u597d", "##\u597d", "\u7535", "\u5f71", "\u00e9", "a"]
    tokenizer = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    keep = tokens_to_keep(tokenizer, ["\u7535 \u5f71"], ())
    assert keep == [0, 1, 2, 5, 6, 7, 8]
    assert trim(tokenizer, keep).encode("\u5f71").ids == [4]


def test_merges_that_lead_to_kept_tokens_stay() -> None:
    whole, small, _ = trimmed("BPE")
    assert "\u0120weather" in small.get_vocab()
    assert "\u0120sentence" in whole.get_vocab()
    assert "\u0120sentence" not in small.get_vocab()
    assert small.decode(small.encode(OTHER).ids) == OTHER


def test_other_kinds_are_refused() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    marked = Tokenizer(models.BPE({"a</w>": 0}, [], end_of_word_suffix="</w>"))
    with pytest.raises(InputError, match="BPE </w>"):
        tokens_to_keep(marked, ["a"], ())
    with pytest.raises(InputError, match="WordLevel") as error:
        tokens_to_keep(tokenizer, ["a"], ())
    assert "WordPiece with ##" in error.value.cure
