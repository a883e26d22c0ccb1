"""Sound builds over families, formats, schemes and seeds: no alarm where nothing is wrong."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebert import pipeline
from edgebert.calibration.dataset import Row, shipped_folders
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.runtimes.run import Classifier, check
from edgebert.pipeline.stages.reference import encode_rows, run_torch

pytestmark = pytest.mark.slow

LABELS = ("accept_reservations", "account_blocked", "alarm")
ROWS = {"train": 40, "dev": 40, "test": 60}
ALARMS = ("another language", "in the order that", "unknown to the tokenizer", "overlap", "finite")


@dataclass(frozen=True)
class Case:
    """One checkpoint and the builds that share its export."""

    family: str
    seed: int
    format: str
    schemes: tuple[str, ...]


CASES = (
    Case(
        "bert",
        0,
        "onnx",
        ("fp32", "dynamic_wi8c_afp32", "static_wi8c_ai8", "dynamic_wi8c_afp32_token"),
    ),
    Case("bert", 1, "onnx", ("dynamic_wi7c_afp32", "fp16")),
    Case("albert", 0, "onnx", ("dynamic_wi8c_afp32", "weight_only_wi8b32", "static_wi8c_ai8")),
    Case("distilbert", 0, "onnx", ("dynamic_wi8c_afp32", "dynamic_wi8_afp32")),
    Case("electra", 2, "onnx", ("static_wi8c_ai8_smooth", "dynamic_wi7c_afp32_token")),
    Case("roberta", 3, "onnx", ("dynamic_wi8c_afp32", "fp32")),
    Case("deberta-v2", 0, "onnx", ("dynamic_wi8c_afp32", "fp32")),
    Case("bert", 0, "tflite", ("dynamic_wi8c_afp32", "fp32", "weight_only_wi8c_afp32")),
)


def label_texts(checkpoint: Checkpoint, folder: Path) -> None:
    """Texts that the checkpoint labels without a doubt, as a trained one does; the rest is left."""
    folder.mkdir()
    seen: set[str] = set()
    for split, count in ROWS.items():
        file = shipped_folders()["clinc150"] / f"{split}.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines()
        texts = [" ".join(json.loads(line)["text"].split()[:4]) for line in lines[::37]]
        rows = [Row(text) for text in dict.fromkeys(texts) if text not in seen][: 3 * count]
        seen |= {row.text for row in rows}
        encoded = encode_rows(checkpoint.tokenizer, rows, checkpoint.max_length)
        logits = np.stack(run_torch(checkpoint, encoded))
        ranked = np.sort(logits, axis=1)
        clear = np.argsort(ranked[:, -2] - ranked[:, -1], kind="stable")[:count]
        labeled = [
            {"text": rows[i].text, "label": checkpoint.labels[logits[i].argmax()]}
            for i in sorted(clear)
        ]
        content = "".join(json.dumps(row) + "\n" for row in labeled)
        (folder / f"{split}.jsonl").write_text(content, encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.family}-{c.seed}-{c.format}")
def test_no_alarm(
    case: Case,
    balanced_checkpoint: Callable[..., Checkpoint],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    checkpoint = balanced_checkpoint(case.family, tmp_path / "model", LABELS, seed=case.seed)
    label_texts(checkpoint, tmp_path / "data")
    for scheme in case.schemes:
        request = pipeline.BuildRequest(
            model=str(checkpoint.path),
            data=str(tmp_path / "data"),
            target="android-arm64",
            formats=(case.format,),  # type: ignore[arg-type]
            overrides=(f"quantize.scheme={scheme}", "measure.runs=5", "calibration.rows=24"),
            max_drop=0.04,
            out=tmp_path / scheme,
        )
        result = pipeline.build(request)
        expect_silence(result, scheme)
        proof = check(result.bundle.path, Classifier(result.bundle.path, case.format))
        assert proof["passed"], (scheme, proof["faults"])


def expect_silence(result: Any, scheme: str) -> None:
    """Every gate holds, nothing failed on the way, and no note is a warning."""
    report = result.report
    assert result.passed, (scheme, [gate.message for gate in report.gates])
    assert [trial.failure for trial in report.trials if trial.failure] == [], scheme
    notes = [*report.notes, *(note for drift in report.drift.values() for note in drift.notes)]
    assert [note for note in notes if any(alarm in note for alarm in ALARMS)] == [], scheme
    (drift,) = report.drift.values()
    assert drift.metrics[0].reference == 1.0 and drift.nonfinite_rows == 0


def test_there_are_twenty() -> None:
    assert sum(len(case.schemes) for case in CASES) == 20
    assert len({case.family for case in CASES}) >= 6
