"""Where in an ONNX graph two machines part: its inner values, compared step by step."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from numpy.typing import NDArray

from edgebert.calibration.dataset import Row
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.runners import Job, Runner, find_runner
from edgebert.pipeline.runtimes.onnx_file import load_proto
from edgebert.pipeline.runtimes.onnx_size import save_onnx
from edgebert.pipeline.stages.device_rows import describe_rows
from edgebert.pipeline.stages.onnx_loop import unroll

Values = NDArray[np.float64]
# What a layer is made of; the second input is the weight that names the step.
STEPS = (
    "LayerNormalization",
    "SkipLayerNormalization",
    "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul",
    "MatMulInteger",
    "MatMulNBits",
    "Gemm",
    "MatMul",
)
# Relative difference that fp32 rounding alone (1e-7 a sum) does not make, nor a step that merely
# passes on what came before it makes the first.
ROUNDING = 1e-4


def find_start(runner: Runner, bundle: Bundle, rows: Sequence[Row]) -> str:
    """The first step of model.onnx at which a runner differs from this machine.

    Args:
        runner: the other machine.
        bundle: with model.onnx.
        rows: texts on which the two differ.

    Returns:
        For people: the weight of the step, which use of it, and by how much the values differ.
        Empty where no step does.
    """
    with TemporaryDirectory() as folder:
        probe, names = _probe(bundle.file("onnx"), Path(folder))
        file = Path(folder) / "rows.jsonl"
        lines = (json.dumps(row) + "\n" for row in describe_rows(rows))
        file.write_text("".join(lines), encoding="utf-8")
        job = Job("rows", bundle.path, "onnx", rows=file, outputs=probe)
        here, there = _outputs(find_runner("local"), job), _outputs(runner, job)
    for step, (output, name) in enumerate(names.items(), 1):
        apart = max(_apart(a[output], b[output]) for a, b in zip(here, there, strict=True))
        if apart > ROUNDING:
            return f"{name} (step {step} of {len(names)}, off by {apart:.2%})"
    return ""


def _outputs(runner: Runner, job: Job) -> list[dict[str, Values]]:
    """Arrays by name for each row."""
    found = []
    for answer in runner.run(job):
        outputs = answer.get("outputs")
        if isinstance(outputs, dict):
            found.append({name: np.asarray(value, np.float64) for name, value in outputs.items()})
    return found


def _probe(file: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the graph with the output of every step; output -> name for people, in order."""
    proto = unroll(load_proto(file))  # a step for every use of a shared layer
    stored = {tensor.name for tensor in proto.graph.initializer}
    uses: Counter[str] = Counter()
    names: dict[str, str] = {}
    for node in proto.graph.node:
        weight = next((name for name in node.input[1:] if name in stored), "")
        if node.op_type not in STEPS or not weight:
            continue
        uses[weight] += 1
        dtype = "INT32" if node.op_type == "MatMulInteger" else "FLOAT"
        value = onnx.helper.make_tensor_value_info(
            node.output[0], getattr(onnx.TensorProto, dtype), None
        )
        if node.output[0] not in {output.name for output in proto.graph.output}:
            proto.graph.output.append(value)
        names[node.output[0]] = f"{node.op_type} of {weight}, use {uses[weight]}"
    probe = folder / "probe.onnx"
    save_onnx(proto, probe)
    return probe, names


def _apart(here: Values, there: Values) -> float:
    """Relative difference; 1 where one side is not finite."""
    if here.shape != there.shape or not np.isfinite(there).all():
        return 1.0
    return float(np.linalg.norm(here - there)) / max(float(np.linalg.norm(here)), 1e-30)
