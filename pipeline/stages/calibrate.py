"""Calibration rows: drawn from the train split and tokenized."""

from edgebert.calibration import Dataset
from edgebert.calibration.sample import draw_calibration
from edgebert.pipeline.artifact import Checkpoint, TokenRow
from edgebert.pipeline.recipe import CalibrationSettings
from edgebert.pipeline.stages.reference import encode_rows


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
        InputError: no train split, or too few usable rows in it.
    """
    rows = draw_calibration(data, settings.rows, settings.seed)
    encoded = encode_rows(checkpoint.tokenizer, rows, min(checkpoint.max_length, max_length))
    return tuple(TokenRow(tuple(row.ids), tuple(row.type_ids)) for row in encoded)
