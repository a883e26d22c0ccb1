"""Every scheme that a target would try is built and run."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from edgebert import pipeline
from edgebert.targets import load_target, target_names
from edgebert.targets.errors import InputError


def distinct_targets() -> list[str]:
    """One target of each set of candidates."""
    seen: dict[object, str] = {}
    for name in target_names():
        target = load_target(name)
        tables = (
            target.onnx and target.onnx.candidates,
            target.tflite and target.tflite.candidates,
        )
        seen.setdefault(tables, name)
    return list(seen.values())


@pytest.mark.parametrize("name", distinct_targets())
def test_every_candidate_of_a_target_builds(
    edgebert: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No scheme passes with so small a limit of size, so that every candidate is tried."""
    monkeypatch.setenv("EDGEBERT_CACHE", str(edgebert.cache))
    request = pipeline.BuildRequest(
        model=str(edgebert.model),
        data=str(edgebert.data),
        target=name,
        max_size_mb=0.001,
        out=tmp_path / "bundle",
    )
    result = pipeline.build(request)
    assert not result.passed
    target = load_target(name)
    for format in target.formats:
        table = target.onnx if format == "onnx" else target.tflite
        assert table is not None
        tried = {t.scheme: t for t in result.report.trials if t.format == format}
        assert tuple(tried) == table.candidates
        assert {scheme: t.failure for scheme, t in tried.items() if t.failure} == {}
        for trial in tried.values():
            assert trial.drift is not None
            assert trial.drift.agreement is not None
            assert trial.drift.agreement > 0.7
        assert sum(t.kept for t in tried.values()) == 1


def test_without_train_texts_the_calibrated_candidates_are_left_out(
    edgebert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(edgebert.cache))
    data = tmp_path / "data"
    data.mkdir()
    for split in ("dev", "test"):
        shutil.copy(edgebert.data / f"{split}.jsonl", data)
    request = pipeline.BuildRequest(
        model=str(edgebert.model),
        data=str(data),
        target="android-arm64",
        formats=("onnx",),
        max_drop=0.5,
        out=tmp_path / "bundle",
    )
    report = pipeline.build(request).report
    failed = {trial.scheme: trial.failure for trial in report.trials if trial.failure}
    assert set(failed) == {"static_wi8c_ai8_smooth", "dynamic_wi8c_afp32_smooth"}
    assert all("calibration texts" in failure for failure in failed.values())
    assert [trial.scheme for trial in report.trials if trial.kept] == ["dynamic_wi8c_afp32"]
    assert any("no calibrated scheme could be tried: no train split" in n for n in report.notes)
    only = dataclasses.replace(request, overrides=("quantize.scheme=static_wi8c_ai8",))
    with pytest.raises(InputError, match="no train split"):
        pipeline.build(only)


def test_all_candidates_can_be_compared_and_the_first_that_passes_is_kept(
    edgebert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(edgebert.cache))
    names = ("dynamic_wi8c_afp32", "weight_only_wi8b128", "fp32")
    request = pipeline.BuildRequest(
        model=str(edgebert.model),
        data=str(edgebert.data),
        target="android-arm64",
        max_drop=0.5,
        formats=("onnx",),
        overrides=(f"quantize.candidates={list(names)}", "quantize.exhaustive=true"),
        out=tmp_path / "bundle",
    )
    trials = pipeline.build(request).report.trials
    assert tuple(trial.scheme for trial in trials) == names
    assert [trial.kept for trial in trials] == [True, False, False]


OLD_TARGET = """
name = "old"
description = "a device whose runtime cannot be changed"
arch = "aarch64"
[onnx]
runtime = "onnxruntime{version}"
max_opset = {opset}
max_ir_version = 10
candidates = ["{scheme}"]
"""


@pytest.mark.parametrize(
    ("scheme", "version", "opset", "fits"),
    [
        ("weight_only_wi8b128", "==1.21.0", 21, False),  # its 8-bit kernels came with 1.22
        ("weight_only_wi8b128", ">=1.16,<1.22", 21, False),
        ("weight_only_wi8b128", ">=1.16", 21, True),  # the bundle pins what was measured
        ("weight_only_wi8b128", "==1.23.0", 21, True),
        ("dynamic_wi8c_afp32", "==1.14.1", 18, True),
        ("dynamic_wi8c_afp32", "==1.13.1", 18, False),  # the opset came with 1.14
    ],
)
def test_a_runtime_is_not_asked_for_what_it_does_not_have(
    tiny_checkpoint: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    version: str,
    opset: int,
    fits: bool,
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    sizes = {"vocab_size": 400, "hidden_size": 64, "intermediate_size": 256}
    checkpoint = tiny_checkpoint("albert", tmp_path / "model", **sizes)
    target = tmp_path / "old.toml"
    target.write_text(OLD_TARGET.format(scheme=scheme, version=version, opset=opset))
    request = pipeline.BuildRequest(
        model=str(checkpoint.path), target=str(target), validate=False, out=tmp_path / "bundle"
    )
    if fits:
        assert pipeline.build(request).report.manifest.models["onnx"].scheme == scheme
        return
    with pytest.raises(
        InputError, match=rf"needs onnxruntime .*, and the target has .*{version[-4:]}"
    ):
        pipeline.build(request)
    assert not (tmp_path / "bundle").exists()
