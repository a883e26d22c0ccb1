"""Sensitivity: what quantizing each layer alone does to the logits."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from edgebert.calibration.dataset import Dataset
from edgebert.calibration.sample import spread
from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.drift import LayerSensitivity
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.stages.reference import encode_rows
from edgebert.pipeline.stages.validate import run_sessions

# Beyond it a ratio says nothing: fp32 itself computes with 24 bits, 144 dB.
MAX_DB = 120.0
_FILE = "sensitivity.json"
_TABLE = TypeAdapter(tuple[LayerSensitivity, ...])


@dataclass(frozen=True)
class Sensitivity:
    """Measure every layer of a model in one scheme, on texts of the dev split.

    Each layer is quantized by itself, as the scheme does it, and the file is run as a device runs
    it. The ratio of the logits' power to that of their error is the layer's: noise of independent
    sources adds up, so that the layer with the lowest ratio costs most.

    Attributes:
        quantizer: the scheme, and what the target takes.
        rows: how many dev texts, a seeded draw spread over labels and lengths.
        seed: of the draw.
    """

    quantizer: QuantizeOnnx | QuantizeLitert
    rows: int = 128
    seed: int = 0

    def __call__(
        self,
        checkpoint: Checkpoint,
        fp32: Model,
        calibration: Sequence[TokenRow],
        data: Dataset,
        out: Path,
    ) -> tuple[LayerSensitivity, ...]:
        """The layers, costliest first; leaves them in `out` as well.

        Args:
            checkpoint: what `fp32` was exported from.
            fp32: the exported model.
            calibration: rows of train texts, where the scheme is calibrated.
            data: its dev split is what the logits are of.
            out: folder of the result.

        Raises:
            InputError: there are no rows for a calibrated scheme.
            SchemeError: the scheme's tool failed on this model.
        """
        rows = [data.dev[index] for index in spread(data.dev, self.rows, self.seed)]
        encoded = encode_rows(checkpoint.tokenizer, rows, fp32.info.max_length)
        inputs = [(tokens.ids, tokens.type_ids) for tokens in encoded]

        def logits(file: Path) -> Any:
            pad_id = int(checkpoint.config.pad_token_id or 0)
            found = run_sessions(file, inputs, 1, pad_id, checkpoint.family.pads_left).logits
            return np.concatenate([np.ravel(row) for row in found]).astype(np.float64)

        expected = logits(fp32.file)
        with tempfile.TemporaryDirectory() as folder:
            files = self.quantizer.one_by_one(checkpoint, fp32, calibration, Path(folder))
            found = [
                LayerSensitivity(
                    layer=layer.name,
                    parameters=layer.parameters,
                    uses=layer.uses,
                    snr_db=_ratio_db(expected, logits(file)),
                )
                for layer, file in files
            ]
        table = tuple(sorted(found, key=lambda one: (one.snr_db, one.layer)))
        out.mkdir(parents=True, exist_ok=True)
        (out / _FILE).write_bytes(_TABLE.dump_json(table, indent=2))
        return table


def read_sensitivity(out: Path) -> tuple[LayerSensitivity, ...]:
    """The table that an earlier call left."""
    return _TABLE.validate_json((out / _FILE).read_bytes())


def _ratio_db(expected: Any, actual: Any) -> float:
    """Signal to noise, 10 log10(sum x^2 / sum (x - y)^2), within +-`MAX_DB`."""
    noise = float(np.square(expected - actual).sum())
    if not math.isfinite(noise):
        return -MAX_DB
    signal = float(np.square(expected).sum())
    if not noise or not signal:
        return MAX_DB
    return max(-MAX_DB, min(MAX_DB, 10 * math.log10(signal / noise)))
