"""Rows of random tokens, for what is measured on a model and hardly depends on the text."""

import numpy as np

from edgebert.pipeline.artifact import Checkpoint, TokenRow
from edgebert.pipeline.runtimes.run import encode

ROWS = 64
TOKENS = (8, 16, 24, 32)  # that rows have, in turns


def random_rows(checkpoint: Checkpoint, seed: int = 0) -> tuple[TokenRow, ...]:
    """Random ids of the tokenizer's vocabulary, between the tokens that it puts around a text.

    Which channels of a LayerNorm are large is a matter of its weights and of special tokens:
    smoothing by these rows serves as well as by texts of the task.
    """
    generator = np.random.default_rng(seed)
    around = encode(checkpoint.tokenizer, "", None, checkpoint.max_length).ids
    first, last = around[:1], around[1:]
    known = min(checkpoint.tokenizer.get_vocab_size(), checkpoint.config.vocab_size)
    rows = []
    for index in range(ROWS):
        count = min(TOKENS[index % len(TOKENS)], checkpoint.max_length) - len(around)
        words = generator.integers(0, known, max(count, 1))
        ids = (*first, *words.tolist(), *last)
        rows.append(TokenRow(ids, (0,) * len(ids)))
    return tuple(rows)
