"""A plain torch export, then ONNX Neural Compressor's `quantize` with `DynamicQuantConfig`.

make.py CHECKPOINT OUT leaves OUT/model.onnx.
"""

import sys
import tempfile
from pathlib import Path

import torch
from onnx_neural_compressor.quantization import config, quantize
from torch.export import Dim
from transformers import AutoModelForSequenceClassification

NAMES = ("input_ids", "attention_mask", "token_type_ids")


def main(checkpoint: Path, out: Path) -> None:
    """As the module says."""
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    model.config.return_dict = False
    shape = {0: Dim("batch", min=1, max=64), 1: Dim("seq", min=2, max=512)}
    inputs = {name: torch.ones(2, 16, dtype=torch.long) for name in NAMES}
    with tempfile.TemporaryDirectory() as folder:
        exported = str(Path(folder, "fp32.onnx"))
        torch.onnx.export(
            model,
            (),
            exported,
            kwargs=inputs,
            dynamo=True,
            dynamic_shapes={name: shape for name in NAMES},
            output_names=["logits"],
            external_data=False,
        )
        quantize(exported, str(out / "model.onnx"), config.DynamicQuantConfig())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
