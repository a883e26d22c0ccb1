"""Every scheme that a target would try is built and run."""

from pathlib import Path
from typing import Any

import pytest

from edgebert import pipeline
from edgebert.targets import load_target, target_names


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
