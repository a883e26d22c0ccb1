"""Trimmed vocabularies: what is kept reads as before, and anything can still be spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from edgebert.pipeline.stages.random_weights import make_tokenizer
from edgebert.pipeline.stages.trim import trim, used_tokens
from edgebert.targets.errors import InputError

TOKENIZER = make_tokenizer(600, 0, cls_last=False)
TEXTS = ["what is the weather today", "please play some music", "transfer money to my bank account"]
ANY_TEXT = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=60)


def trimmed(size: int = 140) -> tuple[Tokenizer, list[int]]:
    keep = used_tokens(TOKENIZER, TEXTS, size)
    return trim(TOKENIZER, keep), keep


@pytest.mark.parametrize("texts", [(text, None) for text in TEXTS] + [(TEXTS[0], TEXTS[1])])
def test_given_texts_are_cut_as_before(texts: tuple[str, str | None]) -> None:
    small, keep = trimmed()
    before, after = TOKENIZER.encode(*texts), small.encode(*texts)
    assert after.tokens == before.tokens
    assert [keep[token] for token in after.ids] == before.ids
    assert after.type_ids == before.type_ids


@given(ANY_TEXT)
def test_any_text_can_be_spelled(text: str) -> None:
    small, keep = trimmed()
    before, after = TOKENIZER.encode(text), small.encode(text)
    assert max(after.ids) < len(keep) <= 140
    assert after.tokens.count("[UNK]") == before.tokens.count("[UNK]")
    spelled = ["".join(token.removeprefix("##") for token in e.tokens) for e in (before, after)]
    assert spelled[0] == spelled[1]


def test_the_most_frequent_pieces_stay() -> None:
    texts = [*["music"] * 3, *["weather"] * 2, "bank"]
    always = len(used_tokens(TOKENIZER, [], 600))
    keep = used_tokens(TOKENIZER, texts, always + 2)
    assert [TOKENIZER.token_to_id(word) in keep for word in ("music", "weather", "bank")] == [
        True,
        True,
        False,
    ]


def test_a_size_too_small_is_refused() -> None:
    with pytest.raises(InputError, match="a vocabulary of 20 is too small: 109 entries") as caught:
        used_tokens(TOKENIZER, TEXTS, 20)
    assert caught.value.cure == "set at least 109"


def test_the_post_processor_of_bert_follows() -> None:
    vocabulary = {"[PAD]": 0, "x": 1, "[UNK]": 2, "[CLS]": 3, "[SEP]": 4, "y": 5}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    small = trim(tokenizer, [0, 2, 3, 4, 5])  # no post-processor at all
    assert small.encode("y x").ids == [4, 1]
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 4), ("[CLS]", 3))
    small = trim(tokenizer, [0, 2, 3, 4, 5])
    assert small.encode("y x").ids == [2, 4, 1, 3]


def test_a_special_token_has_to_stay() -> None:
    keep = [token for token in range(600) if token != TOKENIZER.token_to_id("[MASK]")]
    with pytest.raises(InputError, match=r"special token \[MASK\] has to stay"):
        trim(TOKENIZER, keep)
