"""litert-torch's `convert` at 32 tokens, then ai-edge-quantizer's recommended recipe for CPUs.

make.py CHECKPOINT OUT leaves OUT/model.tflite.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import litert_torch
import torch
from ai_edge_quantizer import quantizer, recipe
from transformers import AutoModelForSequenceClassification

NAMES = ("input_ids", "attention_mask", "token_type_ids")
TOKENS = 32


class Logits(torch.nn.Module):
    """A classifier that returns the tensor of logits, [batch, labels]."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self.model = AutoModelForSequenceClassification.from_pretrained(checkpoint)

    def forward(self, **inputs: torch.Tensor) -> Any:
        """The logits."""
        return self.model(**inputs).logits


def main(checkpoint: Path, out: Path) -> None:
    """As the module says."""
    inputs = {name: torch.ones(1, TOKENS, dtype=torch.int32) for name in NAMES}
    with tempfile.TemporaryDirectory() as folder:
        converted = str(Path(folder, "fp32.tflite"))
        litert_torch.convert(Logits(checkpoint).eval(), sample_kwargs=inputs).export(converted)
        tool = quantizer.Quantizer(converted)
        tool.load_quantization_recipe(recipe.dynamic_wi8_afp32())
        tool.quantize().export_model(str(out / "model.tflite"), overwrite=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
