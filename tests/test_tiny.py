"""The whole pipeline on a tiny model in seconds: build one format, predict, validate."""

import json
from pathlib import Path
from typing import Any

import pytest

from edgebert import pipeline


def test_build_predict_validate(
    edgebert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    request = pipeline.BuildRequest(
        model=str(edgebert.model),
        target="android-arm64",
        data=str(edgebert.data),
        out=tmp_path / "bundle",
        formats=("onnx",),
        overrides=("quantize.scheme=dynamic_wi8c_afp32",),
        max_drop=0.2,
    )
    result = pipeline.build(request)
    assert result.passed
    assert result.bundle.path == tmp_path / "bundle"
    assert result.report.drift["onnx"].agreement is not None
    assert result.report.drift["onnx"].agreement > 0.8

    bundle = pipeline.Bundle.open(tmp_path / "bundle")
    assert bundle.formats == ("onnx",)
    assert bundle.manifest.family == "albert"

    lines = (bundle.path / "golden.jsonl").read_text(encoding="ascii").splitlines()
    golden = [json.loads(line) for line in lines]
    answers = pipeline.predict(bundle.path, [row["text"] for row in golden])
    agree = [row["labels"][0] == a["label"] for row, a in zip(golden, answers, strict=True)]
    assert sum(agree) >= 0.8 * len(agree)

    validation = pipeline.validate(bundle.path)
    assert validation.passed
    assert validation.drift["onnx"].metrics == result.report.drift["onnx"].metrics
