"""The tokenizer of a checkpoint folder: tokenizer.json as it is, or made from the slow files."""

import json
import warnings
from pathlib import Path
from typing import Any

from edgebert.targets.errors import InputError

TOKENIZER = "tokenizer.json"
# Any of these makes a tokenizer; merges.txt and bpe.codes come with a vocabulary.
SLOW_FILES = ("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model")


def read_tokenizer(folder: Path, vocab_size: int) -> Any:
    """The `tokenizers.Tokenizer` of a folder.

    A folder without tokenizer.json gets the class that its tokenizer_config.json names, or else
    that of its configuration; the folder's own name means nothing.

    Args:
        folder: the checkpoint.
        vocab_size: rows of the word embedding, which the ids have to fit.

    Raises:
        InputError: no tokenizer, a file that is none, or ids beyond the embedding.
    """
    from tokenizers import Tokenizer

    fast = folder / TOKENIZER
    slow = [name for name in SLOW_FILES if (folder / name).exists()]
    if not fast.exists() and not slow:
        raise InputError(f"no {TOKENIZER}", str(folder), f"or one of {', '.join(SLOW_FILES)}")
    try:
        tokenizer = Tokenizer.from_file(str(fast)) if fast.exists() else _convert(folder)
    except Exception as error:  # tokenizers raises bare Exceptions
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        file = fast if fast.exists() else folder / slow[0]
        raise InputError(f"no readable tokenizer: {reason[:160]}", str(file)) from error
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if largest >= vocab_size:
        raise InputError(
            f"the tokenizer has the id {largest}, the word embedding {vocab_size} rows",
            str(folder),
            "give the tokenizer that the model was trained with",
        )
    if not fast.exists():
        _warn_of_lost_case(tokenizer, folder)
    return tokenizer


def _convert(folder: Path) -> Any:
    """Make a fast tokenizer of slow files."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True).backend_tokenizer


def _warn_of_lost_case(tokenizer: Any, folder: Path) -> None:
    """Warn where a cased vocabulary is lower-cased only because nothing says otherwise."""
    settings: dict[str, Any] = {}
    file = folder / "tokenizer_config.json"
    if file.exists():
        settings = json.loads(file.read_text(encoding="utf-8"))
    if "do_lower_case" in settings or tokenizer.normalizer is None:
        return
    special = {added.content for added in tokenizer.get_added_tokens_decoder().values()}
    upper = [
        token
        for token in sorted(tokenizer.get_vocab())
        if token.lower() != token and not token.startswith("[") and token not in special
    ]
    if upper and tokenizer.normalizer.normalize_str(upper[0]) != upper[0]:
        warnings.warn(
            f"{folder}: the vocabulary has upper case ('{upper[0]}'), but texts are lower-cased by "
            'default; if the model is cased, set "do_lower_case": false in tokenizer_config.json',
            stacklevel=2,
        )
