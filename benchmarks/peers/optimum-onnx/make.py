"""`optimum-cli export onnx`, then `ORTQuantizer` with the dynamic arm64 configuration.

make.py CHECKPOINT OUT leaves OUT/model.onnx.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from optimum.onnxruntime import ORTQuantizer
from optimum.onnxruntime.configuration import AutoQuantizationConfig


def main(checkpoint: Path, out: Path) -> None:
    """As the module says."""
    program = str(Path(sys.executable).with_name("optimum-cli"))
    with tempfile.TemporaryDirectory() as exported:
        command = [program, "export", "onnx", "--model", str(checkpoint)]
        command += ["--task", "text-classification", exported]
        subprocess.run(command, check=True)
        quantizer = ORTQuantizer.from_pretrained(exported, file_name="model.onnx")
        configuration = AutoQuantizationConfig.arm64(is_static=False, per_channel=False)
        quantizer.quantize(save_dir=out, quantization_config=configuration, file_suffix=None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
