"""Trim a WordPiece vocabulary to what the given texts use."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer

from edgebert.targets.errors import InputError


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


def trim_tokenizer(tokenizer: Tokenizer, keep: Sequence[int]) -> Tokenizer:
    """The same WordPiece tokenizer with the ids of `keep` renumbered from 0 in their order.

    Raises:
        InputError: the tokenizer is not WordPiece, or a special token is not kept.
    """
    document = json.loads(tokenizer.to_str())
    if document["model"]["type"] != "WordPiece":
        raise InputError(f"cannot trim a {document['model']['type']} vocabulary, only WordPiece")
    new_ids = {old: new for new, old in enumerate(keep)}
    vocabulary: dict[str, int] = document["model"]["vocab"]
    for token in document["added_tokens"]:
        if token["id"] not in new_ids:
            raise InputError(f"the special token {token['content']} has to stay in the vocabulary")
        token["id"] = new_ids[token["id"]]
    document["model"]["vocab"] = {
        piece: new_ids[old]
        for piece, old in sorted(vocabulary.items(), key=lambda item: item[1])
        if old in new_ids
    }
    processor = document["post_processor"] or {}
    for token in processor.get("special_tokens", {}).values():  # TemplateProcessing
        token["ids"] = [new_ids[old] for old in token["ids"]]
    for name in ("sep", "cls"):  # BertProcessing
        if name in processor:
            piece, old = processor[name]
            processor[name] = [piece, new_ids[old]]
    return Tokenizer.from_str(json.dumps(document))
