"""Quantization-aware training: the integer graph computes with what the quantizers learned."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import numpy_helper

from edgebert import pipeline
from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import RANGES, Checkpoint
from edgebert.pipeline.build_result import BuildResult
from edgebert.pipeline.recipe import CalibrationSettings, load_recipe
from edgebert.pipeline.runtimes import onnx_file
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.fake_quantizers import (
    Batch,
    insert_quantizers,
    learned_ranges,
    load_ranges,
    save_ranges,
    snap,
)
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.onnx_loop import unroll
from edgebert.pipeline.stages.quantize_aware import QuantizeAware
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.training_settings import QuantizeAwareSettings
from edgebert.targets.errors import InputError

SIZES = {"hidden_size": 64, "intermediate_size": 256, "vocab_size": 400}
TEXTS = ("what is the weather", "play my music please", "find a bank account", "a very good film")
SETTINGS = QuantizeAwareSettings(epochs=2, batch_size=4, learning_rate=1e-4)
TINY = CalibrationSettings(rows=8)


def batches(checkpoint: Checkpoint, texts: Sequence[str] = TEXTS) -> list[Batch]:
    found = []
    for text in texts:
        ids = torch.tensor([checkpoint.tokenizer.encode(text).ids])
        found.append({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        if checkpoint.has_token_type_ids:
            found[-1]["token_type_ids"] = torch.zeros_like(ids)
    return found


def onnx_logits(file: Path, rows: Sequence[Batch]) -> Any:
    session = onnxruntime.InferenceSession(str(file))
    names = [each.name for each in session.get_inputs()]
    feeds = [{name: row[name].numpy() for name in names} for row in rows]
    return np.concatenate([np.asarray(session.run(None, feed)[0]) for feed in feeds])


def texts(count: int = 16, labels: Sequence[str | None] = (None,)) -> Dataset:
    rows = [Row(f"{TEXTS[i % 4]} {i}", labels[i % len(labels)]) for i in range(count)]
    return Dataset("texts", tuple(rows), (), (), "")


@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("family", ["bert", "albert", "distilbert"])
def test_the_integer_graph_computes_what_was_trained(
    family: str, reduce_range: bool, tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint(family, tmp_path / "checkpoint", **SIZES)
    rows = batches(checkpoint)
    quantized = insert_quantizers(load_model(checkpoint), rows, reduce_range)
    ranges = learned_ranges(quantized, rows[0])
    uses = {len(one.input_scale) for one in ranges.values()}
    assert uses == ({1, 3} if family == "albert" else {1})  # three depths share the layer
    assert {one.weight_steps for one in ranges.values()} == {63 if reduce_range else 127}
    with torch.no_grad():
        expected = torch.cat([quantized(**row).logits for row in rows]).numpy()
    model = load_model(checkpoint)
    with torch.no_grad():
        for layer, one in ranges.items():
            weight = model.get_submodule(layer).weight
            weight.copy_(snap(weight, one))
    model.save_pretrained(checkpoint.path)
    save_ranges(ranges, checkpoint.path)
    fp32 = ExportOnnx()(checkpoint, tmp_path / "fp32")
    name = f"static_wi{7 if reduce_range else 8}c_ai8_trained"
    stage = QuantizeOnnx(find_scheme(name, "onnx"))
    # The word table is int8 in the file alone.
    tables = [x.name for x in stage.layers(checkpoint, fp32) if x.name not in ranges]
    stage = dataclasses.replace(stage, fp32_layers=tuple(tables))
    int8 = stage(checkpoint, fp32, (), tmp_path / "int8")
    error = np.abs(onnx_logits(int8.file, rows) - expected).mean()
    assert error < 0.01 * np.abs(expected).max()  # a sum may round to the other step
    proto = unroll(onnx_file.load_proto(int8.file))
    types = [node.op_type for node in proto.graph.node]
    assert types.count("MatMulIntegerToFloat") == sum(len(r.input_scale) for r in ranges.values())
    assert onnx_file.duplicates(proto, larger_than=1000) == ()
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    weights = [
        numpy_helper.to_array(stored[node.input[1]])
        for node in proto.graph.node
        if node.op_type == "MatMulIntegerToFloat"
    ]
    assert max(np.abs(each.astype(int)).max() for each in weights) == (63 if reduce_range else 127)


def test_training_brings_the_quantized_model_nearer_to_fp32(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    """With weights of 7 bits, and without a single label."""
    checkpoint = tiny_checkpoint("albert", tmp_path / "checkpoint", **SIZES)
    rows = batches(checkpoint, [row.text for row in texts().train])
    model = load_model(checkpoint)
    with torch.no_grad():
        target = torch.cat([model(**row).logits for row in rows]).log_softmax(-1)

    def divergence(settings: QuantizeAwareSettings, out: Path) -> float:
        stage = QuantizeAware(settings, TINY, reduce_range=True)
        trained = stage(checkpoint, texts(), out / "trained", out / "work")
        fp32 = ExportOnnx()(trained, out / "fp32")
        scheme = find_scheme("static_wi7c_ai8_trained", "onnx")
        int8 = QuantizeOnnx(scheme)(trained, fp32, (), out / "int8")
        answers = torch.from_numpy(onnx_logits(int8.file, rows)).log_softmax(-1)
        return float((target.exp() * (target - answers)).sum(-1).mean())

    settings: dict[str, Any] = {"batch_size": 4, "alpha": 0.0}
    before = divergence(
        QuantizeAwareSettings(epochs=0.25, learning_rate=1e-12, **settings), tmp_path / "before"
    )
    after = divergence(
        QuantizeAwareSettings(epochs=20, learning_rate=2e-4, **settings), tmp_path / "after"
    )
    assert after < 0.7 * before


def test_what_training_leaves(tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("albert", tmp_path / "checkpoint", labels=["a", "b"], **SIZES)
    data, steps = texts(labels=("a", "b", None)), []
    stage = QuantizeAware(SETTINGS, TINY)
    trained = [
        stage(
            checkpoint, data, tmp_path / name, tmp_path / f"{name}-work", lambda *x: steps.append(x)
        )
        for name in ("one", "two")
    ]
    assert len(steps) == 2 * 8
    assert trained[0].sha256 == trained[1].sha256 != checkpoint.sha256
    one = load_model(trained[0])
    ranges = load_ranges(trained[0])
    for layer, found in ranges.items():
        weight = one.get_submodule(layer).weight
        steps_of = weight / found.weight_scale[:, None]
        assert (steps_of - steps_of.round()).abs().max() < 1e-3
    # A plain process reads it, and the ranges are part of what it is.
    assert (trained[0].path / RANGES).exists()
    before = trained[0].sha256
    (trained[0].path / RANGES).unlink()
    assert Checkpoint(trained[0].path, "x").sha256 != before
    with pytest.raises(InputError, match="not trained with quantizers"):
        load_ranges(trained[0])
    # TFLite takes the trained weights with ranges of its own.
    fp32 = ExportLitert((16,))(trained[1], tmp_path / "tflite")
    scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
    assert QuantizeLitert(scheme)(trained[1], fp32, (), tmp_path / "int8").size_mb > 0


def test_an_interrupted_training_goes_on(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("albert", tmp_path / "checkpoint", **SIZES)
    settings = QuantizeAwareSettings(epochs=2, batch_size=4, learning_rate=1e-4, save_steps=3)
    stage = QuantizeAware(settings, TINY)

    def stop(step: int, steps: int, loss: float) -> None:
        if step == 5:
            raise KeyboardInterrupt

    seen: list[int] = []
    whole = stage(checkpoint, texts(), tmp_path / "whole", tmp_path / "a")
    with pytest.raises(KeyboardInterrupt):
        stage(checkpoint, texts(), tmp_path / "broken", tmp_path / "b", stop)
    broken = stage(
        checkpoint, texts(), tmp_path / "broken", tmp_path / "b", lambda step, *_: seen.append(step)
    )
    assert seen == [4, 5, 6, 7, 8]
    assert broken.sha256 == whole.sha256


def test_settings_are_checked(tmp_path: Path) -> None:
    recipe = load_recipe("quantization-aware")
    assert recipe.trains_quantizers
    assert not load_recipe("quantization-aware", ["quantize_aware.epochs=0"]).trains
    for setting, field in {"epochs=-1": "epochs", "bf16=true": "bf16", "epoch=1": "epoch"}.items():
        with pytest.raises(InputError, match=rf"quantize_aware\.{field}"):
            load_recipe("quantization-aware", [f"quantize_aware.{setting}"])


def build(edgebert: Any, out: Path, *overrides: str, **changes: Any) -> BuildResult:
    fields: dict[str, Any] = {
        "model": str(edgebert.model),
        "data": str(edgebert.data),
        "target": "android-arm64",
        "recipe": "quantization-aware",
        "overrides": ("quantize_aware.batch_size=16", "calibration.rows=8", *overrides),
        "max_drop": 0.5,
        "out": out,
    }
    return pipeline.build(pipeline.BuildRequest(**(fields | changes)))


def test_a_build_trains_and_ships_what_was_trained(
    edgebert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(edgebert.cache))
    result = build(edgebert, tmp_path / "out")
    schemes = {name: model.scheme for name, model in result.report.manifest.models.items()}
    assert schemes["onnx"] == "static_wi8c_ai8_trained"
    assert "quantize_aware" in [stage.name for stage in result.report.manifest.stages]
    # x86 without VNNI gets 7 bits.
    request = pipeline.BuildRequest(
        model=str(edgebert.model),
        target="desktop-x86_64",
        recipe="quantization-aware",
        data=str(edgebert.data),
        out=tmp_path / "x86",
    )
    assert "static_wi7c_ai8_trained" in pipeline.plan(request).text()


def test_without_what_it_needs_it_is_refused(edgebert: Any, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    done = edgebert(
        "build",
        "--model",
        edgebert.model,
        "--target",
        "android-arm64",
        "--no-validate",
        "--recipe",
        "quantization-aware",
        *out,
    )
    edgebert.expect_error(done, 2, "recipe quantization-aware trains", "--data")
    done = edgebert.build("--set", "quantize.scheme=static_wi8c_ai8_trained", *out)
    edgebert.expect_error(done, 2, "needs quantization-aware training", "[quantize_aware]")
