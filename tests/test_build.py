"""Builds as a user runs them: the bundle, its streams, the gates, the main job."""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.stages.report import read_report
from edgebert.targets import target_text

FILES = {
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


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_bundle_has_every_file(built: Any) -> None:
    bundle, _ = built
    assert {file.name for file in bundle.iterdir()} == FILES
    opened = Bundle.open(bundle)
    assert opened.formats == ("onnx", "tflite")
    assert opened.manifest.passed is True
    assert opened.manifest.labels == ("accept_reservations", "account_blocked", "alarm")
    assert {entry.split("=")[0] for entry in opened.manifest.requirements["onnx"]} >= {
        "onnxruntime"
    }
    assert opened.manifest.stages[0].name == "load"


def test_streams(built: Any) -> None:
    _, done = built
    described = json.loads(done.stdout)
    assert described["passed"] is True
    assert Path(described["bundle"]).name == "built"
    assert {gate["name"] for gate in described["gates"]} == {
        "drift (onnx)",
        "size (onnx)",
        "drift (tflite)",
        "size (tflite)",
    }
    lines = done.stderr.splitlines()
    assert all(line.rstrip().endswith((" s", "cached")) for line in lines), done.stderr
    for stage in ("load", "export onnx", "quantize", "validate tflite", "measure", "bundle"):
        assert any(line.startswith(stage) for line in lines)
    assert "\x1b" not in done.stderr


def test_second_build_is_cached_and_identical(edgebert: Any, built: Any) -> None:
    bundle, _ = built
    start = time.monotonic()
    again = edgebert.build("--out", "again", "--max-drop", "0.2", "--json")
    elapsed_s = time.monotonic() - start
    assert again.returncode == 0, again.stderr
    assert again.stderr.split() == ["build", "cached"]
    assert contents(edgebert.folder / "again") == contents(bundle)
    assert elapsed_s < 10  # 3 s on a machine with nothing else to do


def test_bundle_runs_by_itself(edgebert: Any, built: Any) -> None:
    bundle, _ = built
    for format in ("onnx", "tflite"):
        words = [sys.executable, str(bundle / "run.py"), "--check", "--format", format]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_own_target_and_own_recipe(edgebert: Any, tmp_path: Path) -> None:
    target = tmp_path / "my-device.toml"
    text = target_text("raspberry-pi-5").replace("raspberry-pi-5", "my-device")
    target.write_text(text.replace("[32, 64, 128]", "[16, 48]"), encoding="utf-8")
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        'name = "mine"\n[quantize]\nscheme = "dynamic_wi8c_afp32"\n'
        "[validate]\ntest_rows = 20\n[gates]\nmax_drop = 0.3\n",
        encoding="utf-8",
    )
    out = tmp_path / "bundle"
    words = ("--recipe", recipe, "--out", out, "--format", "tflite")
    done = edgebert.build(*words, target=target)
    assert done.returncode == 0, done.stderr
    manifest = Bundle.open(out).manifest
    assert manifest.target.name == "my-device"
    assert manifest.models["tflite"].lengths == (16, 48)
    assert manifest.models["tflite"].scheme == "dynamic_wi8c_afp32"
    assert manifest.drift[0].rows == 20
    assert manifest.recipe["name"] == "mine"
    # Validated again on the same rows with the same limit, unless others are asked for.
    same = json.loads(edgebert("validate", out, "--json").stdout)
    assert same["gates"][0]["limit"] == 0.3
    assert same["drift"]["tflite"]["rows"] == 20

    recipe.write_text('name = "mine"\n[quantize]\nshceme = "auto"\n', encoding="utf-8")
    edgebert.expect_error(edgebert.build("--recipe", recipe), 2, "quantize.shceme", f"{recipe}:3")
    target.write_text(text.replace("threads = 4", "threads = 'four'"), encoding="utf-8")
    edgebert.expect_error(edgebert.build(target=target), 2, "threads", f"{target}:5")


def test_without_proof(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    words = ("build", "--model", edgebert.model, "--target", "android-arm64", "--no-validate")
    done = edgebert(*words, *quick, "--out", tmp_path / "bundle")
    assert done.returncode == 0, done.stderr
    assert "without proof" in done.stdout
    manifest = Bundle.open(tmp_path / "bundle").manifest
    assert manifest.passed is None
    assert manifest.drift == ()
    edgebert.expect_error(edgebert("validate", tmp_path / "bundle"), 2, "--data")
    other = edgebert("validate", tmp_path / "bundle", "--data", edgebert.data, "--max-drop", "0.5")
    assert other.returncode == 0, other.stderr


def test_on_another_machine(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = edgebert.build(*quick, "--validate-on", "local", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "local: same label on 100.00 % of 60 texts" in done.stdout
    report = read_report(out)
    (found,) = report.machines
    assert (found.format, found.runner, found.rows, found.available) == ("onnx", "local", 60, 60)
    assert found.max_abs_logit == 0
    names = {gate.name for gate in report.gates}
    assert {"labels (onnx on local)", "cosine (onnx on local)", "drift (onnx on local)"} <= names
    assert 'id="machines"' in (out / "report.html").read_text(encoding="utf-8")
    assert "labels (onnx on local)" in (out / "junit.xml").read_text(encoding="utf-8")
    assert "--validate-on local" in report.command
    unknown = edgebert.build(*quick, "--validate-on", "cloud", "--out", tmp_path / "none")
    edgebert.expect_error(unknown, 2, "unknown runner 'cloud'", "qemu:cortex-a76")
    missing = edgebert.build(*quick, "--validate-on", "qemu:cortex-a76", "--out", tmp_path / "none")
    edgebert.expect_error(missing, 3, "not set up", "edgebert doctor --fix qemu")
    again = edgebert("validate", out, "--on", "qemu:cortex-a53")
    edgebert.expect_error(again, 3, "not set up", "edgebert doctor --fix qemu")


@pytest.mark.parametrize(
    ("words", "gate"),
    [
        (("--max-drop", "0", "--set", "quantize.scheme=static_wi8c_ai8_smooth"), "drift"),
        (("--max-size", "0.01"), "size"),
        (("--max-latency", "0.0001"), "latency"),
    ],
)
def test_a_gate_fires(edgebert: Any, quick: Any, words: Any, gate: str, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    done = edgebert.build(*quick, *words, "--out", out)
    assert done.returncode == 1, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith(f"  FAILED {gate}"))
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["passed"] is False
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    failed = [each for each in report["gates"] if not each["passed"]]
    assert [each["name"] for each in failed] == [f"{gate} (onnx)"]
    assert failed[0]["value"] > failed[0]["limit"] == float(words[1])
    assert f"limit {failed[0]['limit']:g}" in line
    assert f"{failed[0]['value']:.4f}"[:6] in line or f"{failed[0]['value']:.4g}" in line
    assert "<failure" in (out / "junit.xml").read_text(encoding="utf-8")
    if gate == "size":
        assert edgebert.build(*quick, *words, "--out", out).returncode == 1  # also from the cache


def test_validate_again(edgebert: Any, built: Any, tmp_path: Path) -> None:
    bundle, done = built
    again = edgebert("validate", bundle, "--json")
    assert again.returncode == 0, again.stderr
    described = json.loads(again.stdout)
    first = json.loads(done.stdout)
    for format in ("onnx", "tflite"):
        for key in ("rows", "metrics", "agreement", "cosine_mean"):
            assert described["drift"][format][key] == first["drift"][format][key]
    strict = edgebert("validate", bundle, "--max-drop", "0")
    assert strict.returncode == 1
    assert "FAILED drift (onnx)" in strict.stdout
    assert "limit 0" in strict.stdout
    few = tmp_path / "few.jsonl"
    rows = (edgebert.data / "test.jsonl").read_text(encoding="utf-8").splitlines()
    few.write_text("\n".join(rows), encoding="utf-8")
    other = json.loads(edgebert("validate", bundle, "--data", few, "--json").stdout)
    assert 0 < other["drift"]["onnx"]["rows"] < len(rows)


def test_private_data_leaves_no_text(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    done = edgebert.build(*quick, "--no-texts", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    texts = [
        json.loads(line)["text"]
        for file in edgebert.data.iterdir()
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    for file in (tmp_path / "out").iterdir():
        content = file.read_bytes()
        assert not [text for text in texts if text.encode() in content], file.name
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["drift"]["onnx"]["rows"] == 60 and "--no-texts" in report["command"]
    assert edgebert("validate", tmp_path / "out", "--json").returncode == 0


@pytest.mark.parametrize("name", ["model.onnx", "model.tflite", "tokenizer.json", "run.py"])
def test_validate_refuses_one_altered_byte(
    edgebert: Any, built: Any, name: str, tmp_path: Path
) -> None:
    altered = tmp_path / "altered"
    shutil.copytree(built[0], altered)
    content = bytearray((altered / name).read_bytes())
    content[len(content) // 2] ^= 1
    (altered / name).write_bytes(content)
    for command in ("validate", "predict", "inspect"):
        edgebert.expect_error(edgebert(command, altered), 2, name, "checksum")


@pytest.mark.slow
def test_main_job(edgebert: Any, tmp_path: Path) -> None:
    """The README's first command from a fresh cache, with nothing of the user's."""
    fresh = replace(edgebert, folder=tmp_path, cache=tmp_path / "cache")
    done = fresh("build", "--model", "albert", "--target", "android-arm64", "--json", timeout_s=900)
    assert done.returncode == 0, done.stdout + done.stderr
    out = tmp_path / "artifacts" / "albert-android-arm64"
    assert {file.name for file in out.iterdir()} == FILES
    bundle = Bundle.open(out)
    manifest = bundle.manifest
    assert manifest.family == "albert"
    assert len(manifest.labels) == 151
    assert manifest.passed is True
    assert {entry.format: entry.rows for entry in manifest.drift} == {"onnx": 5500, "tflite": 5500}
    assert {entry.runtime.split()[0] for entry in manifest.drift} == {
        "onnxruntime",
        "ai-edge-litert",
    }
    for entry in manifest.drift:
        assert entry.reference > 0.8
        assert entry.drop <= 0.01
        assert entry.agreement is not None
        assert entry.agreement > 0.97
    for format in bundle.formats:
        size = bundle.file(format).stat().st_size
        assert size <= 1.1 * manifest.parameters + 200_000  # one byte each; the layer is there once
    inspected = json.loads(fresh("inspect", out, "--json").stdout)
    for file in inspected["files"]:
        for tensor in file["largest"]:
            elements = torch.Size(tensor["shape"]).numel()
            assert tensor["dtype"] in ("int8", "uint8") or elements <= 10_000, tensor
    answer = fresh("predict", out, "play some jazz").stdout
    assert answer.startswith("play_music\t")
    again = fresh("build", "--model", "albert", "--target", "android-arm64")
    assert again.returncode == 0
    assert again.stderr.split() == ["build", "cached"]
