"""What token ids tell of texts: none that the model knows, none that the others have."""

import math
from collections.abc import Sequence
from typing import Any

from edgebert.pipeline.runtimes.run import Encoded

UNKNOWN = ("[UNK]", "<unk>")
MANY_UNKNOWN = 0.1  # share of tokens; what a model is meant for has far fewer
# Share of what texts of the same kind cover. Measured on English intents: 0.6 or more for texts of
# another domain, 0.2 for German ones, 0.1 for Chinese ones.
LITTLE_COVERED = 0.4


def distinct_texts(tokenizer: Any, encoded: Sequence[Encoded]) -> list[Encoded]:
    """The texts that say something, each once: those of special tokens alone are left out."""
    special = _special_ids(tokenizer)
    first = {tuple(row.ids): row for row in reversed(encoded)}
    kept = {ids for ids in first if not special.issuperset(ids)}
    return [row for row in encoded if tuple(row.ids) in kept and first[tuple(row.ids)] is row]


def unknown_note(tokenizer: Any, encoded: Sequence[Encoded]) -> str:
    """That the tokenizer does not know what the texts are made of; empty where it does."""
    unknown = {tokenizer.token_to_id(name) for name in UNKNOWN} - {None}
    tokens = [token for row in encoded for token in row.ids]
    share = sum(token in unknown for token in tokens) / max(1, len(tokens))
    if share <= MANY_UNKNOWN:
        return ""
    return (
        f"{share:.0%} of the tokens are unknown to the tokenizer: is it the one of this model, "
        "with its case, and of this language?"
    )


def special_note(tokenizer: Any, encoded: Sequence[Encoded]) -> str:
    """That texts spell out special tokens, such as [SEP]; empty where none does."""
    special = _special_ids(tokenizer) - {tokenizer.token_to_id(name) for name in UNKNOWN}
    count = 0
    for row in encoded:
        own = {token for token, word in zip(row.ids, row.word_ids, strict=True) if word is not None}
        count += not special.isdisjoint(own)
    return f"{count} rows spell out a special token, which is read as one" if count else ""


def coverage_note(
    tokenizer: Any, calibration: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> str:
    """That calibration texts are unlike the texts of use; empty where they are alike.

    Half of the texts of use say what texts of their kind cover of the other half.

    Args:
        tokenizer: that made the ids.
        calibration: ids of each calibration text.
        texts: ids of each text of use (the dev rows).
    """
    special = _special_ids(tokenizer)
    own = texts[0::2][: len(calibration)]
    judged = [token for row in texts[1::2] for token in row if token not in special]
    ours, theirs = (
        sum(token in known for token in judged) / max(1, len(judged))
        for known in ({t for row in rows for t in row} for rows in (calibration, own))
    )
    if math.isclose(theirs, 0) or ours >= LITTLE_COVERED * theirs:
        return ""
    return (
        f"the calibration texts have {ours:.0%} of the tokens of the dev texts, which have "
        f"{theirs:.0%} among themselves: are they in another language?"
    )


def _special_ids(tokenizer: Any) -> set[int]:
    added = tokenizer.get_added_tokens_decoder().items()
    return {token for token, about in added if about.special}
