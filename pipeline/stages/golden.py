"""Golden rows: texts with the token ids and logits by which a device proves itself."""

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgebert.calibration.dataset import Row
from edgebert.calibration.sample import spread
from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.runtimes.run import encode
from edgebert.pipeline.schemes import MIXED, find_scheme
from edgebert.pipeline.stages.reference import run_torch
from edgebert.pipeline.stages.validate import run_sessions
from edgebert.targets import Format

ACCENTS = "café nächste że wysoką izbę"
# Each is one kind of fault that tokenizers written anew have.
NASTY_TEXTS = (
    "",
    " \t\r\n ",
    "note\nbook a\rb\tc",
    unicodedata.normalize("NFC", ACCENTS),
    unicodedata.normalize("NFD", ACCENTS),
    "İstanbul TITLE ISSIZ straße",
    "good👍 👨\u200d👩\u200d👧 ❤\ufe0f 🥱 ok",
    "\u201cends\u201d don\u2019t stop!!! €5 $5 ##ing snake_case",
    "bad [SEP] good [MASK] <s> </s>",
    "東京 は 天気 \uff21\uff22\uff23 100㎞ 한국어",
    "zero\u200bwidth nul\u0000 bell\u0007 bom\ufeff \u202eright to left\u202c",
    "a" * 101 + " " + "word " * 600,
)
# Largest difference of a logit that another processor may make, as a share of the logits' root mean
# square, by the bits of a weight. Dynamic int8 moves by up to a fifth of it between x86 and ARM,
# where a last bit flips a rounding; fp32 by 1e-6.
TOLERANCES = {32: 1e-4, 16: 3e-2, 8: 0.3, 4: 0.3}


class GoldenRow(BaseModel):
    """One line of golden.jsonl.

    Attributes:
        text, text_pair: the input.
        max_length: tokens it is cut to.
        ids, type_ids: its tokens.
        labels: what the reference says: one label, or one a token.
        reference: logits of the fp32 checkpoint, [labels] or [seq, labels].
        onnx, tflite: logits that the model file must give; None where the bundle lacks the format.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    text_pair: str | None
    max_length: int
    ids: list[int]
    type_ids: list[int]
    labels: list[str]
    reference: list[Any]
    onnx: list[Any] | None = None
    tflite: list[Any] | None = None


@dataclass(frozen=True)
class Golden:
    """Make golden.jsonl; a stage of its own, since it needs PyTorch and every model file.

    Attributes:
        test_texts: texts drawn from the test rows, besides the nasty ones; 0 for private data.
    """

    test_texts: int = 20

    def __call__(
        self,
        checkpoint: Checkpoint,
        models: Mapping[Format, Model],
        rows: Sequence[Row],
        out: Path,
    ) -> Path:
        """Leave golden.jsonl in `out`; the file.

        Args:
            checkpoint: the fp32 reference.
            models: the model files.
            rows: where texts are drawn from; may be empty.
            out: the folder.
        """
        out.mkdir(parents=True, exist_ok=True)
        file = out / "golden.jsonl"
        count = min(self.test_texts, len(rows))
        chosen = [rows[index] for index in spread(rows, count, seed=0)] if count else []
        pairs = any(row.text_pair is not None for row in rows)
        golden = golden_rows(checkpoint, models, chosen, pairs)
        # In ASCII: no reader can take a strange character for the end of a line.
        lines = (json.dumps(row.model_dump(), sort_keys=True) + "\n" for row in golden)
        file.write_text("".join(lines), encoding="ascii")
        return file


def read_golden(file: Path) -> tuple[GoldenRow, ...]:
    """The rows of golden.jsonl."""
    with file.open(encoding="ascii") as stream:
        return tuple(GoldenRow.model_validate_json(line) for line in stream)


def golden_rows(
    checkpoint: Checkpoint, models: Mapping[Format, Model], rows: Sequence[Row], pairs: bool = False
) -> tuple[GoldenRow, ...]:
    """The texts of `rows`, and nasty ones, with what the checkpoint and each model file give.

    Args:
        checkpoint: the fp32 reference.
        models: the model files.
        rows: the texts besides the nasty ones.
        pairs: whether the data has pairs of texts.
    """
    inputs = [(row.text or " ".join(row.tokens), row.text_pair) for row in rows]
    pair = "nasty" if pairs else None
    inputs += [(text, pair) for text in NASTY_TEXTS]
    max_length = min(model.info.max_length for model in models.values())
    encoded = [encode(checkpoint.tokenizer, *texts, max_length) for texts in inputs]
    kept = [index for index, tokens in enumerate(encoded) if tokens.ids]
    encoded = [encoded[index] for index in kept]
    reference = run_torch(checkpoint, encoded)
    pad_id = int(checkpoint.config.pad_token_id or 0)
    tokens = [(row.ids, row.type_ids) for row in encoded]
    given: dict[Format, list[Any]] = {}
    for format, model in models.items():
        outputs = run_sessions(model.file, tokens, 1, pad_id, checkpoint.family.pads_left)
        given[format] = [_numbers(logits) for logits in outputs.logits]
    return tuple(
        GoldenRow(
            text=inputs[index][0],
            text_pair=inputs[index][1],
            max_length=max_length,
            ids=encoded[row].ids,
            type_ids=encoded[row].type_ids,
            labels=[checkpoint.labels[i] for i in np.atleast_2d(reference[row]).argmax(1)],
            reference=_numbers(reference[row]),
            **{format: logits[row] for format, logits in given.items()},
        )
        for row, index in enumerate(kept)
    )


def golden_tolerance(rows: Sequence[GoldenRow], format: Format, scheme: str) -> float:
    """Largest difference of a logit from its golden value that still proves an artifact."""
    values = np.concatenate([np.ravel(np.array(getattr(row, format), float)) for row in rows])
    values = values[np.isfinite(values)]
    root_mean_square = float(np.sqrt(np.mean(values**2))) if len(values) else 1.0
    share = TOLERANCES[find_scheme(scheme.removesuffix(MIXED), format).weight_bits]
    return float(f"{max(share * root_mean_square, 1e-6):.2g}")


def _numbers(logits: Any) -> list[Any]:
    """Logits as JSON has them, to six significant digits; a number that is none becomes null."""
    if np.ndim(logits) == 2:
        return [_numbers(row) for row in logits]
    return [float(f"{x:.6g}") if math.isfinite(x) else None for x in map(float, logits)]
