"""Olive's passes for BERT on a CPU: conversion, transformer fusion, dynamic int8.

make.py CHECKPOINT OUT leaves OUT/model.onnx.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from olive.workflows import run

PASSES = {
    "conversion": {"type": "OnnxConversion", "target_opset": 20},
    "fusion": {"type": "OrtTransformersOptimization", "model_type": "bert"},
    "quantization": {"type": "OnnxDynamicQuantization"},
}


def main(checkpoint: Path, out: Path) -> None:
    """As the module says."""
    with tempfile.TemporaryDirectory() as work:
        run(
            {
                "input_model": {
                    "type": "HfModel",
                    "model_path": str(checkpoint),
                    "task": "text-classification",
                },
                "passes": PASSES,
                "output_dir": f"{work}/result",
                "cache_dir": f"{work}/cache",
            }
        )
        (file,) = Path(work, "result").rglob("*.onnx")
        shutil.copyfile(file, out / "model.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
