"""Golden rows prove a bundle of every task, and catch whatever is not as it was built."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.bundle import Bundle, SourceEntry
from edgebert.pipeline.runners import Job
from edgebert.pipeline.runners.local import local_runner
from edgebert.pipeline.runtimes.run import Classifier, check
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.golden import Golden, golden_tolerance, read_golden
from edgebert.targets import Format, load_target

FORMATS: tuple[Format, ...] = ("onnx", "tflite")


@pytest.fixture
def bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Bundle:
    return write_bundle(tiny_bundle_inputs, tmp_path / "out")


def edit_golden(bundle: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = bundle / "golden.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    change(rows[3])
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="ascii")


def alter_logit(bundle: Path, format: str) -> None:
    edit_golden(bundle, lambda row: row[format].__setitem__(0, row[format][0] + 0.01))


def lose_logit(bundle: Path, format: str) -> None:
    edit_golden(bundle, lambda row: row[format].pop())


def not_a_number(bundle: Path, format: str) -> None:
    edit_golden(bundle, lambda row: row[format].__setitem__(0, None))


def alter_tokenizer(bundle: Path, format: str) -> None:
    file = bundle / "tokenizer.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["normalizer"]["lowercase"] = False
    file.write_text(json.dumps(data), encoding="utf-8")


def swap_labels(bundle: Path, format: str) -> None:
    file = bundle / "manifest.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["labels"] = data["labels"][::-1]
    file.write_text(json.dumps(data), encoding="utf-8")


def empty_golden(bundle: Path, format: str) -> None:
    (bundle / "golden.jsonl").write_text("", encoding="ascii")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (alter_logit, "a logit is off by 0.01"),
        (lose_logit, "logits (3,), not (2,)"),
        (not_a_number, "a logit is off by nan"),
        (alter_tokenizer, "other token ids"),
        (swap_labels, "the labels are not in the order"),
        (empty_golden, "golden.jsonl is not the file"),
    ],
)
def test_check_catches(
    bundle: Bundle, format: Format, damage: Callable[[Path, str], None], fault: str
) -> None:
    sound = check(bundle.path, Classifier(bundle.path, format))
    assert sound["passed"], sound
    assert sound["rows"] == 32
    assert sound["max_abs"] < 1e-5
    damage(bundle.path, format)
    result = check(bundle.path, Classifier(bundle.path, format))
    assert not result["passed"]
    assert any(fault in said for said in result["faults"]), result["faults"]
    (answer,) = local_runner().run(Job("check", bundle.path, format))
    assert answer == result


def test_golden_holds_nasty_texts(bundle: Bundle) -> None:
    lines = (bundle.path / "golden.jsonl").read_text(encoding="ascii").split("\n")
    rows = [json.loads(line) for line in lines if line]
    texts = {row["text"] for row in rows}
    for nasty in ("", "caf\u00e9 ", "cafe\u0301 ", "[SEP]", "東京", "👍", "\u0000", "\u202e"):
        assert any(nasty in text for text in texts), nasty
    assert any(len(row["ids"]) == row["max_length"] == 32 for row in rows)  # cut


def onnx_bundle(checkpoint: Checkpoint, rows: Sequence[Row], folder: Path) -> Path:
    model = ExportOnnx()(checkpoint, folder / "onnx")
    golden = Golden()(checkpoint, {"onnx": model}, rows, folder / "golden")
    target = load_target("android-arm64")
    source = SourceEntry(model="tiny", checkpoint_sha256=checkpoint.sha256)
    inputs = BundleInputs(checkpoint, source, target, (model,), golden, parameters=1)
    return write_bundle(inputs, folder / "out").path


def test_token_classification(tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "c", ["O", "B", "I"], task="token")
    rows = (Row("", ("O", "B"), tokens=("good", "film")),)
    path = onnx_bundle(checkpoint, rows, tmp_path)
    classifier = Classifier(path)
    assert check(path, classifier)["passed"]
    tags = classifier.predict("Good film!")["tags"]
    assert [tag["token"] for tag in tags] == ["Good", "film", "!"]
    assert {tag["label"] for tag in tags} <= {"O", "B", "I"}


def test_regression(tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "c", 1)
    path = onnx_bundle(checkpoint, (), tmp_path)
    classifier = Classifier(path)
    assert check(path, classifier)["passed"]
    row = next(row for row in read_golden(path / "golden.jsonl") if "TITLE" in row.text)
    assert row.onnx is not None
    assert classifier.predict(row.text)["value"] == pytest.approx(row.onnx[0], abs=1e-5)


def test_pairs(tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "c")
    path = onnx_bundle(checkpoint, (Row("good", "label_0", text_pair="not bad"),), tmp_path)
    assert all(1 in row.type_ids for row in read_golden(path / "golden.jsonl"))
    assert check(path, Classifier(path))["passed"]


def test_tolerance_follows_the_precision(tiny_bundle_inputs: BundleInputs) -> None:
    rows = read_golden(tiny_bundle_inputs.golden)
    exact, half = (golden_tolerance(rows, "onnx", scheme) for scheme in ("fp32", "fp16"))
    assert 1e-6 <= exact < 1e-3
    assert half == pytest.approx(300 * exact, rel=0.1)
