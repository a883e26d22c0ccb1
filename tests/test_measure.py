"""Measurements are of the file alone, and say what they were made with."""

from pathlib import Path

import numpy as np
import pytest

from edgebert.pipeline.runners import Job, find_runner
from edgebert.pipeline.runners.local import local_runner
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.measure import measure, measure_bundle
from edgebert.targets.errors import InputError


def test_measure_against_fp32(tiny_bundle_inputs: BundleInputs) -> None:
    onnx_model, tflite_model = tiny_bundle_inputs.models
    for model in (onnx_model, tflite_model):
        one = measure(model.file, onnx_model.file, tokens=20, runs=23, warmups=2)
        assert (one.file, one.runner) == (model.file.name, "local")
        assert (one.tokens, one.threads, one.runs, one.warmups) == (20, 1, 23, 2)
        assert 0 < one.p50_ms <= one.p90_ms <= one.p99_ms
        assert one.load_ms > 0
        assert one.first_run_ms > 0
        assert one.fp32_p50_ms is not None
        assert one.speedup == one.fp32_p50_ms / one.p50_ms
    assert measure(onnx_model.file, runs=5).speedup is None


def test_memory_is_not_that_of_the_parent(tiny_bundle_inputs: BundleInputs) -> None:
    ballast = np.ones(60_000_000)  # 480 MB, which the child's getrusage would count
    one = measure(tiny_bundle_inputs.models[0].file, runs=5)
    assert ballast.sum() == len(ballast)
    assert one.peak_mb is not None and one.peak_mb < 300
    assert one.memory_mb is not None and 0 < one.memory_mb < 100


def test_memory_grows_with_the_file(tmp_path: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper, save_model

    weights = numpy_helper.from_array(np.ones((5_000_000, 4), np.float32), "w")  # 80 MB
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "input_ids"], ["logits"])],
        "big",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "seq"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "seq", 4])],
        [weights],
    )
    file = tmp_path / "model.onnx"
    save_model(
        helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)]), file
    )
    assert (measure(file, runs=5).memory_mb or 0) > 80


def test_measure_bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> None:
    bundle = write_bundle(tiny_bundle_inputs, tmp_path / "out")
    found = measure_bundle(bundle, runs=5, threads=2)
    assert [(one.file, one.tokens, one.threads) for one in found] == [
        ("model.onnx", 16, 2),
        ("model.tflite", 16, 2),
    ]


def test_runners(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> None:
    assert find_runner("local") == local_runner()
    with pytest.raises(InputError, match="unknown runner 'cloud'"):
        find_runner("cloud")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match="cannot load"):
        measure(tmp_path / "model.onnx")
    bundle = write_bundle(tiny_bundle_inputs, tmp_path / "out")
    (answer,) = local_runner().run(Job("check", bundle.path))
    assert answer["passed"] is True
    (bundle.path / "golden.jsonl").write_text("", encoding="utf-8")
    (answer,) = local_runner().run(Job("check", bundle.path))
    assert answer["passed"] is False
