"""Calibration rows: drawn from the train split and tokenized."""

from edgebert.calibration import Dataset
from edgebert.calibration.sample import MINIMUM_ROWS, draw_calibration, spread
from edgebert.pipeline.artifact import Checkpoint, TokenRow
from edgebert.pipeline.recipe import CalibrationSettings
from edgebert.pipeline.stages.reference import encode_rows
from edgebert.pipeline.stages.token_checks import coverage_note, distinct_texts
from edgebert.targets.errors import InputError

DEV_ROWS = 600  # that calibration texts are compared with


def calibration_rows(
    checkpoint: Checkpoint, data: Dataset, settings: CalibrationSettings, max_length: int
) -> tuple[TokenRow, ...]:
    """Tokenized train texts, all of one draw.

    Args:
        checkpoint: whose tokenizer reads them.
        data: where they are drawn from.
        settings: how many, and the seed.
        max_length: tokens they are cut to, where the checkpoint takes more.

    Raises:
        InputError: no train split, or too few usable rows in it: rows of special tokens alone do
            not count, and those that become the same tokens count once.
    """
    rows = draw_calibration(data, settings.rows, settings.seed)
    encoded = encode_rows(checkpoint.tokenizer, rows, min(checkpoint.max_length, max_length))
    usable = distinct_texts(checkpoint.tokenizer, encoded)
    if len(usable) < MINIMUM_ROWS:
        raise InputError(
            f"{len(usable)} of {len(rows)} calibration texts are distinct and have a known token, "
            f"{MINIMUM_ROWS} are needed",
            data.name,
            "add train texts, and give the tokenizer that the model was trained with",
        )
    return tuple(TokenRow(tuple(row.ids), tuple(row.type_ids)) for row in usable)


def calibration_notes(
    checkpoint: Checkpoint, data: Dataset, calibration: tuple[TokenRow, ...]
) -> tuple[str, ...]:
    """What a reader must know of calibration rows: that they are unlike the dev texts."""
    dev = [data.dev[index] for index in spread(data.dev, min(DEV_ROWS, len(data.dev)), seed=0)]
    encoded = encode_rows(checkpoint.tokenizer, dev, checkpoint.max_length)
    note = coverage_note(
        checkpoint.tokenizer, [row.ids for row in calibration], [row.ids for row in encoded]
    )
    return (note,) if note else ()
