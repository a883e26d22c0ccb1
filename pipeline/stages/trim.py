"""Trim a vocabulary to the tokens that texts use: WordPiece, Unigram or BPE.

A text whose tokens all stay is cut into the same tokens as before; what is not in the texts can
still be spelled in characters or bytes.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer

from edgebert.targets.errors import InputError

# Blocks of ideographs (Unicode 15, CJK): each is a word, not a letter to spell words with.
IDEOGRAPHS = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
# Kind -> the marks of a piece within a word and at its end.
KINDS = {"WordPiece": ("##", ""), "Unigram": ("", ""), "BPE": ("", "")}
_MARKS = ("##", "▁")  # continues a word (WordPiece); begins one (SentencePiece)


def tokens_to_keep(tokenizer: Tokenizer, texts: Iterable[str], also: Iterable[int]) -> list[int]:
    """Ids to keep, ascending: those in the texts, special tokens, and all characters and bytes.

    Ideographs that the texts do not use go. BPE keeps what its tokens are merged from, Unigram the
    piece with the lowest score, which the price of an unknown character is derived from.

    Args:
        tokenizer: the tokenizer.
        texts: texts that have to come out as before.
        also: more ids.

    Raises:
        InputError: another kind of tokenizer.
    """
    model = json.loads(tokenizer.to_str())["model"]
    marks = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    if KINDS.get(model["type"]) != marks:
        kind = " ".join((model["type"], *filter(None, marks)))
        raise InputError(
            f"cannot trim a vocabulary of this kind: {kind}",
            "prune.vocabulary",
            "it has to be WordPiece with ##, Unigram, or BPE without marks; or leave it out",
        )
    keep = {token for encoding in tokenizer.encode_batch(list(texts)) for token in encoding.ids}
    keep |= {int(token) for token in tokenizer.get_added_tokens_decoder()} | set(also)
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    keep |= {token for piece, token in ids.items() if _spells(piece)}
    keep |= {ids[model["unk_token"]]} if model.get("unk_token") in ids else set()
    if model["type"] == "BPE":
        return sorted(_with_parents(keep, ids, _merges(model)))
    if model["type"] == "Unigram":
        scores = [score for _, score in model["vocab"]]
        keep |= {scores.index(min(scores))}
        keep |= {int(model["unk_id"])} if model["unk_id"] is not None else set()
    return sorted(keep & set(ids.values()))


def used_tokens(tokenizer: Tokenizer, texts: Iterable[str], size: int) -> list[int]:
    """Ids to keep, ascending, so that any text can still be spelled.

    Special tokens and single ASCII characters are always kept; the most frequent pieces fill the
    rest. A text whose pieces are all kept is cut as before, since WordPiece takes the longest piece
    that matches.

    Args:
        tokenizer: a WordPiece tokenizer.
        texts: the texts to cover.
        size: how many to keep at most.

    Raises:
        InputError: special tokens and characters alone are more than `size`.
    """
    counts = Counter(token for e in tokenizer.encode_batch(list(texts)) for token in e.ids)
    vocabulary = tokenizer.get_vocab()
    special = {int(token) for token in tokenizer.get_added_tokens_decoder()}
    characters = {
        token
        for piece, token in vocabulary.items()
        if len(piece.removeprefix("##")) == 1 and piece.removeprefix("##").isascii()
    }
    keep = special | characters
    if len(keep) > size:
        raise InputError(
            f"a vocabulary of {size} is too small: {len(keep)} entries always stay",
            "vocabulary_size",
            f"set at least {len(keep)}",
        )
    by_count = sorted(counts, key=lambda token: (-counts[token], token))
    keep |= set([token for token in by_count if token not in keep][: size - len(keep)])
    return sorted(keep)


def trim(tokenizer: Tokenizer, keep: Sequence[int]) -> Tokenizer:
    """The tokenizer with the ids of `keep` alone, renumbered from 0 in their order.

    Args:
        tokenizer: of a kind that `tokens_to_keep` takes.
        keep: ascending ids, special tokens among them.

    Raises:
        InputError: a special token is not among them.
    """
    document = json.loads(tokenizer.to_str())
    new_ids = {old: new for new, old in enumerate(keep)}
    for token in document["added_tokens"]:
        if token["id"] not in new_ids:
            raise InputError(f"the special token {token['content']} has to stay in the vocabulary")
    model = document["model"]
    if model["type"] == "Unigram":
        entries = model["vocab"]
        model["vocab"] = [entries[old] for old in keep if old < len(entries)]
        if model["unk_id"] is not None:
            model["unk_id"] = new_ids[model["unk_id"]]
    else:
        pieces = sorted(model["vocab"].items(), key=lambda item: item[1])
        model["vocab"] = {piece: new_ids[old] for piece, old in pieces if old in new_ids}
    if model["type"] == "BPE":
        known = model["vocab"]
        model["merges"] = [
            [left, right]
            for left, right in _merges(model)
            if left in known and right in known and left + right in known
        ]
    for token in document["added_tokens"]:
        token["id"] = new_ids[token["id"]]
    _renumber(document["post_processor"], new_ids)
    for name in ("padding", "truncation"):  # set by whoever runs the model
        document[name] = None
    return Tokenizer.from_str(json.dumps(document, ensure_ascii=False))


def _spells(piece: str) -> bool:
    """True for a character or a byte that any word may need."""
    for mark in _MARKS:
        piece = piece.removeprefix(mark) or piece
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):  # byte fallback
        return True
    return len(piece) == 1 and not any(low <= ord(piece) <= high for low, high in IDEOGRAPHS)


def _merges(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Merges as pairs; older files write them in one string."""
    pairs = (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
    return [(left, right) for left, right in pairs]


def _with_parents(
    keep: set[int], ids: Mapping[str, int], merges: Sequence[tuple[str, str]]
) -> set[int]:
    """The ids, and those of every token that a merge on the way to them gives."""
    parents: dict[int, set[int]] = {}
    for left, right in merges:
        result = ids.get(left + right)
        if result is not None and left in ids and right in ids:
            parents.setdefault(result, set()).update((ids[left], ids[right]))
    todo, found = list(keep), set(keep)
    while todo:
        new = parents.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found & set(ids.values())


def _renumber(processor: dict[str, Any] | None, new_ids: Mapping[int, int]) -> None:
    """Give a post-processor the new ids of its special tokens."""
    if processor is None:
        return
    for inner in processor.get("processors", ()):  # Sequence
        _renumber(inner, new_ids)
    for token in processor.get("special_tokens", {}).values():  # TemplateProcessing
        token["ids"] = [new_ids[old] for old in token["ids"]]
    for name in ("sep", "cls"):  # BertProcessing, RobertaProcessing
        if name in processor:
            piece, old = processor[name]
            processor[name] = [piece, new_ids[old]]
