"""Builds as a user runs them: bundle, gates, refusals, strange places, interruptions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgebert import pipeline
from edgebert.pipeline.build_request import BuildRequest
from edgebert.pipeline.bundle import Bundle
from edgebert.targets import load_target, target_names, target_text
from edgebert.targets.errors import InputError

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
SAME = ("manifest.json", "model.onnx", "golden.jsonl", "tokenizer.json", "README.md")


def expect_error(done: Any, code: int, *parts: str) -> None:
    """The exit code, and a message of at most three lines after the stages that went well."""
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    message = lines[next(i for i, line in enumerate(lines) if line.startswith("error: ")) :]
    assert len(message) <= 3, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for part in parts:
        assert part in "\n".join(message)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def expect_nothing_half_written(out: Path, cache: Path) -> None:
    """No bundle at `out` but a whole one, nothing beside it, and no partial result in the cache."""
    if out.exists():
        Bundle.open(out)
    assert [entry.name for entry in out.parent.glob(f".{out.name}.*")] == []
    assert [entry.name for entry in cache.glob(".*") if entry.is_dir()] == []


def request_of(edgebert: Any, **asked: Any) -> BuildRequest:
    """A build in this process, where what is tested is not the process."""
    ours = {"model": str(edgebert.model), "data": str(edgebert.data), "target": "android-arm64"}
    return BuildRequest(**(ours | asked))


def quick_request(edgebert: Any, **asked: Any) -> BuildRequest:
    scheme = "quantize.scheme=dynamic_wi8c_afp32"
    return request_of(edgebert, formats=("onnx",), overrides=(scheme,), max_drop=0.5, **asked)


def json_documents(text: str) -> Any:
    """What `--json` printed: one document and nothing else."""
    return json.loads(text)


# --- the bundle -------------------------------------------------------------------------------


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
    described = json_documents(done.stdout)
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
    expect_error(edgebert.build("--recipe", recipe), 2, "quantize.shceme", f"{recipe}:3")
    target.write_text(text.replace("threads = 4", "threads = 'four'"), encoding="utf-8")
    expect_error(edgebert.build(target=target), 2, "threads", f"{target}:5")


def test_without_proof(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    words = ("build", "--model", edgebert.model, "--target", "android-arm64", "--no-validate")
    done = edgebert(*words, *quick, "--out", tmp_path / "bundle")
    assert done.returncode == 0, done.stderr
    assert "without proof" in done.stdout
    manifest = Bundle.open(tmp_path / "bundle").manifest
    assert manifest.passed is None
    assert manifest.drift == ()
    expect_error(edgebert("validate", tmp_path / "bundle"), 2, "--data")
    other = edgebert("validate", tmp_path / "bundle", "--data", edgebert.data, "--max-drop", "0.5")
    assert other.returncode == 0, other.stderr


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
    request = request_of(edgebert, target=name, max_size_mb=0.001, out=tmp_path / "bundle")
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


# --- gates ------------------------------------------------------------------------------------


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
    described = json_documents(again.stdout)
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
        expect_error(edgebert(command, altered), 2, name, "checksum")


# --- the main job -----------------------------------------------------------------------------


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


# --- what is wrong with the input -------------------------------------------------------------


def test_wrong_data(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    def build(data: Path) -> Any:
        words = ("--data", data, "--out", tmp_path / "out")
        return edgebert.build(*quick, *words)

    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    expect_error(build(empty), 2, "0 usable rows", str(empty))

    malformed = tmp_path / "malformed.jsonl"
    malformed.write_text('{"text": "a", "label": "alarm"}\n{"text": "b"\n', encoding="utf-8")
    expect_error(build(malformed), 2, "not JSON", f"{malformed}, line 2")

    one = tmp_path / "one.jsonl"
    one.write_text('{"text": "a", "label": "alarm"}\n', encoding="utf-8")
    expect_error(build(one), 2, "rows")

    unknown = tmp_path / "unknown"
    shutil.copytree(edgebert.data, unknown)
    with (unknown / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "wake me up", "label": "alarms"}\n')
    done = build(unknown)
    expect_error(done, 2, "unknown label 'alarms'", f"{unknown / 'test.jsonl'}, line 61", "alarm")
    assert "export" not in done.stderr  # said before the work, not after it

    only_test = tmp_path / "only-test"
    only_test.mkdir()
    shutil.copy(edgebert.data / "test.jsonl", only_test)
    expect_error(build(only_test), 2, "no dev rows", "only-test")
    assert not (tmp_path / "out").exists()


def test_wrong_checkpoint(
    edgebert: Any, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(edgebert.cache))
    model, out = tmp_path / "model", tmp_path / "out"

    def refuse(change: Any, *parts: str) -> None:
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(edgebert.model, model)
        change(model)
        with pytest.raises(InputError) as caught:
            pipeline.build(quick_request(edgebert, model=str(model), out=out))
        for part in parts:
            assert part in str(caught.value)

    def cut_short(model: Path) -> None:
        whole = (model / "model.safetensors").read_bytes()
        (model / "model.safetensors").write_bytes(whole[:-100])

    def no_head(model: Path) -> None:
        tensors = load_file(model / "model.safetensors")
        kept = {name: t for name, t in tensors.items() if not name.startswith("classifier")}
        save_file(kept, model / "model.safetensors", {"format": "pt"})

    refuse(no_head, "classifier", "edgebert distill")
    refuse(lambda m: (m / "config.json").write_text("{"), "config.json")
    refuse(lambda m: (m / "config.json").unlink(), "config.json")
    refuse(lambda m: (m / "tokenizer.json").write_text("{}"), "tokenizer.json")
    refuse(lambda m: (m / "model.safetensors").unlink(), "safetensors")
    refuse(cut_short, "model.safetensors")
    done = edgebert.build(*quick, "--model", model, "--out", out)
    expect_error(done, 2, "model.safetensors")
    assert not out.exists()


def test_pickle_only_when_allowed(
    edgebert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    model = tmp_path / "pickled"
    shutil.copytree(edgebert.model, model)
    torch.save(load_file(model / "model.safetensors"), model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()
    with pytest.raises(InputError, match="--allow-pickle"):
        pipeline.build(quick_request(edgebert, model=str(model), out=tmp_path / "out"))
    request = quick_request(edgebert, model=str(model), out=tmp_path / "out", allow_pickle=True)
    result = pipeline.build(request)
    assert result.passed
    assert "--allow-pickle" in request.command_line()
    assert pipeline.validate(tmp_path / "out").passed


def test_other_files_are_kept(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "thesis.docx").write_text("ten years of work", encoding="utf-8")
    expect_error(edgebert.build(*quick, "--out", out), 2, "thesis.docx", "--out")
    assert contents(out) == {"thesis.docx": b"ten years of work"}
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    expect_error(edgebert.build(*quick, "--out", file), 2, str(file), "--out")
    expect_error(edgebert.build(*quick, "--out", file / "below"), 2, str(file), "--out")


# --- strange places ---------------------------------------------------------------------------


def test_paths_in_any_script(edgebert: Any, tmp_path: Path) -> None:
    home = tmp_path / "Мои файлы 文件 größe"
    model, data = home / "модель 模型", home / "данные 数据"
    shutil.copytree(edgebert.model, model)
    shutil.copytree(edgebert.data, data)
    there = replace(
        edgebert, folder=home, cache=home / "Zwischenspeicher 缓存", env={"LC_ALL": "C"}
    )
    out = home / "Bündel 包"
    words = ("--set", "quantize.scheme=dynamic_wi8c_afp32", "--max-drop", "0.5", "--out", out)
    done = there("build", "--model", model, "--data", data, "--target", "android-arm64", *words)
    assert done.returncode == 0, done.stderr
    assert str(out) in done.stdout
    assert Bundle.open(out).manifest.model == model.name
    answer = there("predict", out, "будильник 闹钟", "--json")
    assert json.loads(answer.stdout)[0]["text"] == "будильник 闹钟"


def test_read_only_source(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    """A folder that not even root can write: mounted read-only."""
    source = tmp_path / "read-only"
    source.mkdir()
    mount = ["mount", "--bind", "-o", "ro", str(edgebert.folder), str(source)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting needs privileges that are not here")
    try:
        with pytest.raises(OSError, match=r"[Rr]ead-only"):
            (source / "tiny" / "x").write_text("")
        fresh = replace(edgebert, folder=tmp_path, cache=tmp_path / "cache")
        words = ("--target", "android-arm64", *quick, "--out", tmp_path / "out")
        given = ("build", "--model", source / "tiny", "--data", source / "data")
        assert fresh(*given, *words).returncode == 0
        done = fresh(*given, *words, "--out", source / "out")
        expect_error(done, 2, str(source), "--out")
    finally:
        subprocess.run(["umount", str(source)], check=True)


@pytest.mark.parametrize(
    ("full", "size"),
    [("cache", "16k"), ("cache", "250k"), ("cache", "500k"), ("out", "16k"), ("out", "150k")],
)
def test_full_disk(
    edgebert: Any, quick: Any, built: Any, full: str, size: str, tmp_path: Path
) -> None:
    """A file system of its own that is too small, for the cache or for the bundle."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting needs privileges that are not here")
    try:
        out, cache = tmp_path / "bundle", edgebert.cache
        if full == "out":
            out = disk / "bundle"
        else:
            cache = disk / "cache"
        done = replace(edgebert, cache=cache).build(*quick, "--out", out)
        expect_error(done, 3, "disk is full", str(disk))
        assert "EDGEBERT_CACHE" in done.stderr if full == "cache" else "--out" in done.stderr
        assert not out.exists()
        expect_nothing_half_written(out, cache)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# --- interruptions ----------------------------------------------------------------------------


def start(edgebert: Any, *words: str | Path) -> "subprocess.Popen[str]":
    ours = ("build", "--model", edgebert.model, "--data", edgebert.data)
    command = edgebert.command(*ours, "--target", "android-arm64", *words)
    return subprocess.Popen(
        command,
        cwd=edgebert.folder,
        env=edgebert.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def finished(stderr: str) -> set[str]:
    """Names of the stages that a build has reported as run, not as cached."""
    return {stage_of(line) for line in stderr.splitlines() if line.endswith(" s")}


def stage_of(line: str) -> str:
    """Name of the stage of a line of progress, which ends with `cached` or the time."""
    return line.rstrip().removesuffix(" s").rsplit(maxsplit=1)[0].strip()


def test_killed_at_any_moment(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    """Killed in its first stages, in the middle, at the end, then run to the end."""
    fresh = replace(edgebert, cache=tmp_path / "cache")
    out = tmp_path / "out" / "bundle"
    done: set[str] = set()
    for stop_after in ("", "load", "export onnx", "validate onnx dynamic_wi8c_afp32 on dev"):
        child = start(fresh, *quick, "--out", out)
        assert child.stderr is not None
        if not stop_after:
            while not list(fresh.cache.glob(".*.partial")):
                time.sleep(0.01)
        else:
            for line in child.stderr:
                name = stage_of(line)
                if line.rstrip().endswith(" s"):
                    assert name not in done, f"{name} was finished and ran again"
                    done.add(name)
                if name == stop_after:
                    break
        child.kill()
        rest = child.communicate()[1] or ""
        done |= finished(rest)
        assert child.returncode == -signal.SIGKILL
        assert not out.exists()
    end = fresh.build(*quick, "--out", out)
    assert end.returncode == 0, end.stderr
    again = finished(end.stderr) & done
    assert all(name.startswith(("measure", "bundle")) for name in again), again  # timed anew
    expect_nothing_half_written(out, fresh.cache)
    reference = edgebert.build(*quick, "--out", tmp_path / "whole")
    assert reference.returncode == 0, reference.stderr
    for name in SAME:
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize("after", ["", "load", "export onnx"])
def test_interrupted(edgebert: Any, quick: Any, after: str, tmp_path: Path) -> None:
    fresh = replace(edgebert, cache=tmp_path / "cache")
    out = tmp_path / "bundle"
    child = start(fresh, *quick, "--out", out)
    assert child.stderr is not None
    if after:
        for line in child.stderr:
            if line.startswith(after):
                break
    else:
        while not list(fresh.cache.glob(".*.partial")):
            time.sleep(0.01)
    time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130, stderr
    assert stdout == ""
    assert stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr
    assert not out.exists()
    expect_nothing_half_written(out, fresh.cache)


def test_interrupted_over_an_older_bundle(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    assert edgebert.build(*quick, "--out", out).returncode == 0
    before = contents(out)
    child = start(replace(edgebert, cache=tmp_path / "cache"), *quick, "--out", out)
    while not list((tmp_path / "cache").glob(".*.partial")):
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert contents(out) == before


def test_two_caches_give_the_same_bytes(edgebert: Any, built: Any, tmp_path: Path) -> None:
    fresh = replace(edgebert, cache=tmp_path / "cache")
    done = fresh.build("--out", tmp_path / "bundle", "--max-drop", "0.2")
    assert done.returncode == 0, done.stderr
    assert not any(line.endswith("cached") for line in done.stderr.splitlines())
    for name in (*SAME, "model.tflite"):
        assert (tmp_path / "bundle" / name).read_bytes() == (built[0] / name).read_bytes(), name


def test_no_cache_runs_anew_and_gives_the_same_bytes(
    edgebert: Any, quick: Any, tmp_path: Path
) -> None:
    assert edgebert.build(*quick, "--out", tmp_path / "first").returncode == 0
    done = edgebert.build(*quick, "--out", tmp_path / "bundle", "--no-cache")
    assert done.returncode == 0, done.stderr
    assert "export onnx" in finished(done.stderr)
    assert not any(line.endswith("cached") for line in done.stderr.splitlines())
    for name in SAME:
        first = tmp_path / "first" / name
        assert (tmp_path / "bundle" / name).read_bytes() == first.read_bytes(), name


def test_two_builds_at_once(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    """The same build twice and another one beside them, all with one fresh cache."""
    fresh = replace(edgebert, cache=tmp_path / "cache")
    other = ("--set", "quantize.scheme=weight_only_wi8b32")
    children = [
        start(fresh, *quick, "--out", tmp_path / "one"),
        start(fresh, *quick, "--out", tmp_path / "two"),
        start(fresh, *quick, *other, "--out", tmp_path / "three"),
    ]
    errors = [child.communicate(timeout=300)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], errors
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert sum("export onnx" in finished(error) for error in errors) == 1
    for name in ("one", "two", "three"):
        expect_nothing_half_written(tmp_path / name, fresh.cache)


def test_a_harmed_cache_is_noticed(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert edgebert.build(*quick, "--out", tmp_path / "first").returncode == 0
    shutil.copytree(edgebert.cache, cache)
    for file in cache.rglob("model.onnx"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    done = replace(edgebert, cache=cache).build(*quick, "--out", tmp_path / "bundle")
    assert done.returncode == 0, done.stderr
    assert "export onnx" in finished(done.stderr)
    assert "load" not in finished(done.stderr)
    for name in SAME:
        first = tmp_path / "first" / name
        assert (tmp_path / "bundle" / name).read_bytes() == first.read_bytes(), name
