"""A bundle is written whole or not at all, and refused when a byte of it is another."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebert.pipeline.bundle import Bundle, Manifest, StageEntry, may_replace
from edgebert.pipeline.drift import DriftReport, Gate
from edgebert.pipeline.findings import MetricDrift
from edgebert.pipeline.folders import replace_folder
from edgebert.pipeline.stages.bundle import BundleInputs, render_readme, requirements, write_bundle
from edgebert.targets import Target, load_target
from edgebert.targets.errors import InputError, MachineError

DRIFT = DriftReport(
    task="single_label",
    split="test",
    rows=100,
    runtime="onnxruntime 1.32.0",
    machine="x",
    padding="none",
    metrics=(
        MetricDrift(
            name="accuracy",
            reference=0.9,
            reference_low=0.83,
            reference_high=0.94,
            artifact=0.89,
            artifact_low=0.81,
            artifact_high=0.94,
            drop=0.01,
            drop_low=0,
            drop_high=0.03,
            drop_at_least=0,
            drop_at_most=0.025,
            method="score",
        ),
    ),
    agreement=0.98,
    max_abs_logit=0.2,
)


@pytest.fixture
def bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Bundle:
    return write_bundle(tiny_bundle_inputs, tmp_path / "Bündel 束" / "out")


def test_holds_what_the_contract_lists(bundle: Bundle) -> None:
    names = {file.name for file in bundle.path.iterdir()}
    assert names == {
        "manifest.json",
        "model.onnx",
        "model.tflite",
        "tokenizer.json",
        "golden.jsonl",
        "report.json",
        "report.html",
        "junit.xml",
        "run.py",
        "README.md",
    }
    opened = Bundle.open(bundle.path)
    assert opened == bundle
    assert opened.formats == ("onnx", "tflite")
    assert opened.manifest.labels == ("bad", "so so", "good")
    assert opened.size_mb("onnx") == (bundle.path / "model.onnx").stat().st_size / 1e6
    assert opened.info("tflite").lengths == (16, 32)
    assert opened.manifest.passed is None  # nothing was validated


def test_same_inputs_same_bytes(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> None:
    one, two = (write_bundle(tiny_bundle_inputs, tmp_path / name).path for name in "ab")
    for name in ("manifest.json", "golden.jsonl", "README.md", "run.py"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_manifest_round_trips(bundle: Bundle) -> None:
    text = bundle.manifest.to_json()
    assert Manifest.model_validate_json(text) == bundle.manifest
    assert (bundle.path / "manifest.json").read_text(encoding="utf-8") == text
    assert "20" not in json.loads(text)["stages"]  # no times


@given(st.text(max_size=20), st.lists(st.text(max_size=10), max_size=4))
def test_any_label_round_trips(name: str, labels: list[str]) -> None:
    entry = StageEntry(name=name, key="k")
    assert StageEntry.model_validate_json(entry.model_dump_json()) == entry
    assert json.loads(json.dumps(labels)) == labels


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("damage", "message"),
    [(Path.unlink, "is missing"), (cut, "bytes, not"), (flip, "does not match its checksum")],
)
@pytest.mark.parametrize("name", ["model.onnx", "model.tflite", "tokenizer.json", "golden.jsonl"])
def test_damage_is_refused(
    bundle: Bundle, name: str, damage: Callable[[Path], None], message: str
) -> None:
    damage(bundle.path / name)
    with pytest.raises(InputError, match=message) as caught:
        Bundle.open(bundle.path)
    assert name in caught.value.what
    assert "\n" not in caught.value.what


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not JSON"), ("[]", "schema version None"), ('{"schema_version": 2}', "version 2")],
)
def test_manifest_of_another_kind_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Bundle.open(tmp_path)


def test_manifest_cannot_name_files_elsewhere(bundle: Bundle) -> None:
    file = bundle.path / "manifest.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["files"]["../secret"] = data["files"]["run.py"]
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match="no name of a file"):
        Bundle.open(bundle.path)


def test_no_bundle_and_no_format(tmp_path: Path, bundle: Bundle) -> None:
    with pytest.raises(InputError, match="not a bundle"):
        Bundle.open(tmp_path / "nothing")
    only = bundle.manifest.model_copy(update={"models": {"onnx": bundle.manifest.models["onnx"]}})
    with pytest.raises(InputError, match="no tflite"):
        Bundle(bundle.path, only).file("tflite")


def test_external_data_is_copied_and_checked(
    tiny_bundle_inputs: BundleInputs, tmp_path: Path
) -> None:
    import onnx

    model = tiny_bundle_inputs.models[0]
    moved = tmp_path / "external"
    shutil.copytree(model.path, moved)
    onnx.save(
        onnx.load(str(model.file)),
        str(moved / "model.onnx"),
        save_as_external_data=True,
        location="model.onnx.data",
        size_threshold=64,
    )
    inputs = replace(tiny_bundle_inputs, models=(type(model)(moved),))
    bundle = write_bundle(inputs, tmp_path / "out")
    assert bundle.manifest.models["onnx"].external_data == ("model.onnx.data",)
    assert Bundle.open(bundle.path).size_mb("onnx") > model.size_mb
    cut(bundle.path / "model.onnx.data")
    with pytest.raises(InputError, match=r"model\.onnx\.data has"):
        Bundle.open(bundle.path)


def test_replaces_a_bundle_and_nothing_else(
    tiny_bundle_inputs: BundleInputs, bundle: Bundle
) -> None:
    (bundle.path / "__pycache__").mkdir()
    write_bundle(tiny_bundle_inputs, bundle.path)
    (bundle.path / "my notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"my notes\.txt"):
        write_bundle(tiny_bundle_inputs, bundle.path)
    assert (bundle.path / "my notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_folder_of_the_user_stays(tmp_path: Path) -> None:
    for name in ("manifest.json", "thesis.tex"):  # somebody else's manifest.json
        (tmp_path / name).write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="no build put there"):
        may_replace(tmp_path)
    with pytest.raises(InputError, match="a file is where"):
        may_replace(tmp_path / "thesis.tex")


def test_a_failure_leaves_the_older_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with replace_folder(out, lambda _: None) as folder:
        (folder / "a").write_text("1", encoding="utf-8")

    def fail(number: int) -> None:
        with replace_folder(out, lambda _: None) as folder:
            (folder / "a").write_text("2", encoding="utf-8")
            raise OSError(number, os.strerror(number))

    with pytest.raises(MachineError, match="disk is full"):
        fail(errno.ENOSPC)
    with pytest.raises(InputError, match="cannot write"):
        fail(errno.EROFS)
    assert (out / "a").read_text(encoding="utf-8") == "1"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    with (
        pytest.raises(MachineError, match="disk is full"),
        replace_folder(tmp_path / "out", lambda _: None),
        Path("/dev/full").open("w", encoding="utf-8") as stream,
    ):
        stream.write("x" * 100_000)
    assert list(tmp_path.iterdir()) == []


WRITE_AND_WAIT = """
import sys, time
from pathlib import Path
from edgebert.pipeline.folders import replace_folder
with replace_folder(Path(sys.argv[1]), lambda _: None) as folder:
    (folder / "half").write_text("half")
    print("started", flush=True)
    time.sleep(60)
"""


def test_a_killed_process_leaves_nothing_at_out(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITE_AND_WAIT, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.kill()
    assert not (tmp_path / "out").exists()
    assert len(list(tmp_path.iterdir())) == 1  # its staging folder
    with replace_folder(tmp_path / "out", lambda _: None) as folder:
        (folder / "whole").touch()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_verdict(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> None:
    def gate(passed: bool) -> Gate:
        return Gate(name="size", value=1, limit=1, unit="MB", passed=passed, message="m")

    assert replace(tiny_bundle_inputs, gates=(gate(True),)).passed is None  # no proof
    assert replace(tiny_bundle_inputs, gates=(gate(False),)).passed is False
    for gates, passed in (((), True), ((gate(True),), True), ((gate(True), gate(False)), False)):
        inputs = replace(tiny_bundle_inputs, drift={"onnx": DRIFT}, gates=gates)
        assert inputs.passed is passed
    manifest = write_bundle(inputs, tmp_path / "out").manifest
    assert manifest.passed is False
    assert manifest.drift[0].drop == 0.01
    assert "**A gate failed**" in render_readme(manifest)


def test_requirements_go_together() -> None:
    from importlib.metadata import version

    target = load_target("android-arm64")
    assert requirements(target, "onnx")[0] == f"onnxruntime=={version('onnxruntime')}"
    old = Target.model_validate(
        {
            "name": "old",
            "description": "32-bit",
            "arch": "armv7l",
            "tflite": {
                "runtime": "tflite-runtime==2.14.0",
                "module": "tflite_runtime",
                "candidates": ["fp32"],
            },
        }
    )
    runtime, numpy, _ = requirements(old, "tflite")
    assert runtime == "tflite-runtime==2.14.0"
    assert numpy.endswith("<2")  # its wheel was built for NumPy 1


def test_readme_is_for_its_target(bundle: Bundle) -> None:
    text = (bundle.path / "README.md").read_text(encoding="utf-8")
    assert "class OnnxClassifier" in text
    assert "trtexec" not in text
    model = bundle.manifest.models["onnx"].model_copy(update={"scheme": "fp16"})
    jetson = bundle.manifest.model_copy(
        update={
            "target": bundle.manifest.target.model_copy(update={"name": "jetson-orin"}),
            "models": {"onnx": model},
        }
    )
    text = render_readme(jetson)
    assert "kotlin" not in text
    assert "--minShapes=input_ids:1x2,attention_mask:1x2,token_type_ids:1x2" in text
