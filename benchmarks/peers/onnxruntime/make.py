"""A plain torch export, onnxruntime's pre-processing, then `quantize_dynamic`.

make.py CHECKPOINT OUT leaves OUT/fp32.onnx, the export that all latencies are compared with, and
OUT/model.onnx.
"""

import sys
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch.export import Dim
from transformers import AutoModelForSequenceClassification


def export(checkpoint: Path, file: Path) -> None:
    """The checkpoint as ONNX with free batch size and length."""
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    model.config.return_dict = False
    inputs = {
        "input_ids": torch.ones(2, 16, dtype=torch.long),
        "attention_mask": torch.ones(2, 16, dtype=torch.long),
        "token_type_ids": torch.zeros(2, 16, dtype=torch.long),
    }
    shape = {0: Dim("batch", min=1, max=64), 1: Dim("seq", min=2, max=512)}
    torch.onnx.export(
        model,
        (),
        str(file),
        kwargs=inputs,
        dynamo=True,
        dynamic_shapes={name: shape for name in inputs},
        output_names=["logits"],
        external_data=False,
    )


def main(checkpoint: Path, out: Path) -> None:
    """As the module says."""
    export(checkpoint, out / "fp32.onnx")
    # Symbolic shape inference ends in "Incomplete symbolic shape inference" on BERT's graph.
    exported, prepared = str(out / "fp32.onnx"), str(out / "prepared.onnx")
    quant_pre_process(exported, prepared, skip_symbolic_shape=True)
    quantize_dynamic(prepared, str(out / "model.onnx"), weight_type=QuantType.QInt8)
    Path(prepared).unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
