"""Augment: new texts from the labeled ones, with words that a masked language model puts in.

The teacher labels them. Replacing words by a language model's own guesses is TinyBERT's data
augmentation (Jiao et al. 2019, arXiv:1909.10351, section 3.2 and algorithm 1), here for the words
that are one token each.
"""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.targets.errors import InputError

TEXTS = "texts.jsonl"
_MASKS = ("[MASK]", "<mask>")
_MARKERS = ("##", "Ġ", "▁")  # what tells a piece inside a word from one that begins it
_GUESSES = 8  # a word is drawn from the likeliest so many
_BATCH = 64


@dataclass(frozen=True)
class Augment:
    """Make texts.

    Attributes:
        copies: new texts of each text.
        share: share of the words that are replaced.
        max_length: longest input in tokens; words beyond it stay.
        seed: of every random choice.
    """

    copies: int
    share: float
    max_length: int
    seed: int

    def __call__(self, language_model: Checkpoint, rows: Sequence[Row], out: Path) -> None:
        """Leave the texts in `out`.

        Args:
            language_model: a checkpoint with a masked language model's head.
            rows: the texts.
            out: folder of the result.

        Raises:
            InputError: the checkpoint has no such head, or no mask token.
        """
        model = _load(language_model)
        words = _Words(language_model)
        limit = min(self.max_length, language_model.max_length)
        words.tokenizer.enable_truncation(limit)
        draw = random.Random(self.seed)
        generator = torch.Generator().manual_seed(self.seed)
        masked = [self._mask(row, words, draw) for row in rows for _ in range(self.copies)]
        masked = sorted((each for each in masked if each.positions), key=lambda each: len(each.ids))
        with (out / TEXTS).open("w", encoding="utf-8") as file, torch.inference_mode():
            for start in range(0, len(masked), _BATCH):
                batch = masked[start : start + _BATCH]
                for each, guesses in zip(
                    batch, _guess(model, words, batch, generator), strict=True
                ):
                    file.write(json.dumps(each.filled(words, guesses), ensure_ascii=False) + "\n")

    def _mask(self, row: Row, words: "_Words", draw: random.Random) -> "_Masked":
        """One text with its words masked."""
        encoding = words.tokenizer.encode(row.text, row.text_pair)
        counts = Counter(zip(encoding.sequence_ids, encoding.word_ids, strict=True))
        places = zip(encoding.ids, encoding.sequence_ids, encoding.word_ids, strict=True)
        whole = [
            position
            for position, (token, text, word) in enumerate(places)
            if word is not None and counts[text, word] == 1 and words.kinds[token]
        ]
        chosen = sorted(draw.sample(whole, round(self.share * len(whole)))) if whole else []
        ids = list(encoding.ids)
        for position in chosen:
            ids[position] = words.mask
        return _Masked(row, encoding, ids, chosen)


def read_texts(folder: Path) -> tuple[Row, ...]:
    """The texts that `Augment` left."""
    lines = (folder / TEXTS).read_text(encoding="utf-8").splitlines()
    return tuple(Row(text, None, pair) for text, pair in map(json.loads, lines))


@dataclass(frozen=True)
class _Masked:
    """A text, its encoding, the ids with masks, and where they are."""

    row: Row
    encoding: Any
    ids: list[int]
    positions: list[int]

    def filled(self, words: "_Words", guesses: Sequence[int]) -> tuple[str, str | None]:
        """The text, and its second part, with the guesses in the place of its words."""
        texts = [self.row.text, self.row.text_pair]
        # From the back, so that the offsets of what is still to come hold.
        for position, token in sorted(zip(self.positions, guesses, strict=True), reverse=True):
            part = self.encoding.sequence_ids[position]
            start, end = self.encoding.offsets[position]
            text = texts[part]
            assert text is not None
            start += len(text[start:end]) - len(text[start:end].lstrip())
            texts[part] = text[:start] + words.texts[token] + text[end:]
        return str(texts[0]), texts[1]


class _Words:
    """The tokens that stand for a whole word.

    Attributes:
        mask: id of the mask token.
        token_types: whether the model takes token types.
        texts: what each token writes.
        kinds: for each token how it begins; empty where it is no word.
        same: for each kind, which tokens are of it, bool [vocabulary].
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.tokenizer = checkpoint.tokenizer
        found = [self.tokenizer.token_to_id(name) for name in _MASKS]
        mask = next((index for index in found if index is not None), None)
        if mask is None:
            raise InputError(
                "the tokenizer has no mask token: no words can be replaced",
                str(checkpoint.path),
                "set augmented_copies=0, or name another language_model",
            )
        self.mask: int = mask
        self.token_types = checkpoint.has_token_type_ids
        size = int(checkpoint.config.vocab_size)
        special = set(self.tokenizer.get_added_tokens_decoder())
        self.texts, self.kinds = [""] * size, [""] * size
        for token, index in self.tokenizer.get_vocab().items():
            if index >= size or index in special:
                continue
            self.texts[index] = self.tokenizer.decode([index]).removeprefix("##").strip()
            if self.texts[index].isalnum():
                marker = next((each for each in _MARKERS if token.startswith(each)), "-")
                self.kinds[index] = marker
        self.same = {
            kind: torch.tensor([each == kind for each in self.kinds]) for kind in ("-", *_MARKERS)
        }


def _load(checkpoint: Checkpoint) -> Any:
    """The language model; its head must be in the file, not drawn anew."""
    refusal = InputError(
        "the model has no head of a masked language model: no words can be replaced",
        str(checkpoint.path),
        "set augmented_copies=0, or name a language_model that has one",
    )
    try:
        model, report = AutoModelForMaskedLM.from_pretrained(
            checkpoint.path,
            config=checkpoint.config,
            local_files_only=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except ValueError as error:  # XLNet: no masked language model exists for the architecture
        raise refusal from error
    if report["missing_keys"]:
        raise refusal
    return model.eval()


def _guess(
    model: Any, words: _Words, batch: Sequence[_Masked], generator: torch.Generator
) -> list[list[int]]:
    """A token for every mask of a batch: another word than was there, drawn by its likelihood."""
    inputs = {
        "input_ids": _padded([each.ids for each in batch]),
        "attention_mask": _padded([each.encoding.attention_mask for each in batch]),
    }
    if words.token_types:
        inputs["token_type_ids"] = _padded([each.encoding.type_ids for each in batch])
    logits = model(**inputs).logits  # [batch, seq, vocabulary]
    found = []
    for each, scores in zip(batch, logits, strict=True):
        guesses = []
        for position in each.positions:
            original = each.encoding.ids[position]
            fit = words.same[words.kinds[original]].clone()
            fit[original] = False
            best = scores[position].masked_fill(~fit, -torch.inf).topk(_GUESSES)
            chosen = torch.multinomial(best.values.softmax(0), 1, generator=generator)
            guesses.append(int(best.indices[chosen]))
        found.append(guesses)
    return found


def _padded(rows: list[list[int]]) -> torch.Tensor:
    """Rows filled up to the longest with 0, int64 [batch, seq]; the mask hides what that adds."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
