"""run.py: the one runner, here and in an environment that has nothing but what it needs."""

import ast
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.bundle import Bundle, describe_file
from edgebert.pipeline.runners.runner import RUN_PY
from edgebert.pipeline.runtimes.run import (
    Classifier,
    RunError,
    Session,
    encode,
    interpret,
    open_session,
    read_tokenizer,
)
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.reference import run_torch
from edgebert.targets import Format

FORMATS: tuple[Format, ...] = ("onnx", "tflite")
TEXTS = ("the film was good", "", "not", "good " * 100)


@pytest.fixture
def bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Bundle:
    return write_bundle(tiny_bundle_inputs, tmp_path / "Bündel 束")


def run_py(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", str(RUN_PY), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **options)


def agrees(checkpoint: Checkpoint, session: Session, max_length: int) -> None:
    for text in TEXTS:
        row = encode(checkpoint.tokenizer, text, None, max_length)
        (expected,) = run_torch(checkpoint, [row])
        logits = session.logits(row.ids, row.type_ids)
        assert logits.dtype == np.float32
        assert logits.shape == expected.shape
        np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_sessions_agree_with_pytorch(tiny_bundle_inputs: BundleInputs) -> None:
    for model in tiny_bundle_inputs.models:
        session = open_session(model.file)
        agrees(tiny_bundle_inputs.checkpoint, session, model.info.max_length)
    assert session.padding == "right, to 16, 32 tokens, batch 1"
    assert session.runtime.startswith("ai-edge-litert 2.")


def test_padding_on_the_left(tiny_bundle_inputs: BundleInputs) -> None:
    session = open_session(tiny_bundle_inputs.models[1].file, pad_id=7, pads_left=True)
    recorder = Recorder(session)
    session.logits([2, 5, 3], [0, 1, 1])
    assert recorder.fed["input_ids"].tolist() == [[7] * 13 + [2, 5, 3]]
    assert recorder.fed["attention_mask"].tolist() == [[0] * 13 + [1] * 3]
    assert recorder.fed["token_type_ids"].tolist() == [[0] * 13 + [0, 1, 1]]


def test_padding_side_of_a_model_that_pads_left(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("xlnet", tmp_path / "xlnet")
    pad_id = int(checkpoint.config.pad_token_id)
    model = ExportLitert((16, 24))(checkpoint, tmp_path / "tflite")
    assert pad_id != 0
    agrees(checkpoint, open_session(model.file, 1, pad_id, pads_left=True), 24)
    row = encode(checkpoint.tokenizer, TEXTS[0], None, 24)
    right = open_session(model.file, 1, pad_id).logits(row.ids, row.type_ids)
    (expected,) = run_torch(checkpoint, [row])
    assert np.abs(right - expected).max() > 1e-3  # the side matters


def test_logits_of_the_real_tokens(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "bert", task="token")
    models: list[Model] = [
        ExportOnnx()(checkpoint, tmp_path / "onnx"),
        ExportLitert((16, 24))(checkpoint, tmp_path / "tflite"),
    ]
    for model in models:
        agrees(checkpoint, open_session(model.file), 24)


def test_a_text_without_tokens(tiny_bundle_inputs: BundleInputs) -> None:
    for model in tiny_bundle_inputs.models:
        assert np.isfinite(open_session(model.file).logits([], [])).all()


class Recorder:
    """Stands between a session and its runtime and keeps what was fed."""

    def __init__(self, session: Any) -> None:
        self.fed: dict[str, Any] = {}
        original = session._run

        def record(feed: dict[str, Any]) -> Any:
            self.fed = feed
            return original(feed)

        session._run = record


def test_dtype_is_the_files_own(tiny_bundle_inputs: BundleInputs) -> None:
    expected: dict[str, Any] = {"onnx": np.int64, "tflite": np.int32}
    for model in tiny_bundle_inputs.models:
        session = open_session(model.file, pad_id=7)
        recorder = Recorder(session)
        session.logits([2, 5, 6, 3], [0, 0, 1, 1])
        assert {value.dtype for value in recorder.fed.values()} == {
            np.dtype(expected[model.info.format])
        }
        padded = 12 if model.info.format == "tflite" else 0
        assert recorder.fed["input_ids"].tolist() == [[2, 5, 6, 3] + [7] * padded]
        assert recorder.fed["attention_mask"].tolist() == [[1] * 4 + [0] * padded]
        assert recorder.fed["token_type_ids"].tolist() == [[0, 0, 1, 1] + [0] * padded]
        session.logits([2, 5, 3], [])  # a tokenizer that has no types
        assert not recorder.fed["token_type_ids"].any()


def test_only_inputs_that_the_file_has(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("distilbert", tmp_path / "distilbert")
    model = ExportOnnx()(checkpoint, tmp_path / "onnx")
    session = open_session(model.file)
    recorder = Recorder(session)
    row = encode(checkpoint.tokenizer, "good", "not good", 24)
    assert 1 in row.type_ids
    session.logits(row.ids, row.type_ids)
    assert set(recorder.fed) == {"input_ids", "attention_mask"}


def test_too_long_for_every_signature(tiny_bundle_inputs: BundleInputs) -> None:
    session = open_session(tiny_bundle_inputs.models[1].file)
    with pytest.raises(RunError, match="33 tokens, and the model takes 32"):
        session.logits([5] * 33, [0] * 33)


def test_provider_must_be_the_one_asked_for(tiny_bundle_inputs: BundleInputs) -> None:
    file = tiny_bundle_inputs.models[0].file
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has the provider")
    with pytest.raises(RunError, match="asked for cuda, got CPUExecutionProvider") as caught:
        open_session(file, provider="cuda")
    assert caught.value.exit_code == 3
    assert "CPU" in open_session(file, provider="cuda", allow_cpu=True).runtime


@pytest.mark.parametrize("content", [b"", b"no model"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_broken_file_is_an_error_of_one_line(
    tmp_path: Path, suffix: Format, content: bytes
) -> None:
    file = tmp_path / f"model.{suffix}"
    file.write_bytes(content)
    with pytest.raises(RunError, match="cannot load"):
        open_session(file)
    with pytest.raises(RunError, match="no such file"):
        open_session(tmp_path / f"nothing.{suffix}")


def test_truncation_keeps_the_separators(tiny_bundle_inputs: BundleInputs) -> None:
    tokenizer = read_tokenizer(tiny_bundle_inputs.checkpoint.path / "tokenizer.json")
    separator = tokenizer.token_to_id("[SEP]")
    long = encode(tokenizer, "good " * 50, None, 16)
    assert (len(long.ids), long.ids[-1], long.truncated) == (16, separator, True)
    pair = encode(tokenizer, "good " * 50, "not bad", 16)  # the longer one loses
    assert pair.ids.count(separator) == 2
    assert pair.ids[-1] == separator
    assert pair.type_ids.count(1) == 3
    short = encode(tokenizer, "good", None, 16)
    assert (len(short.ids), short.truncated) == (3, False)
    words = encode(tokenizer, ["good", "xyz"], None, 16)
    assert words.word_ids == [None, 0, 1, 1, 1, None]


def test_interpretation_of_each_head() -> None:
    for value in (0.37, -2.5, 4.1):  # softmax would say 1, sigmoid 0.591, 0.076, 0.984
        assert interpret("regression", ["x"], [value]) == {"value": value}
    several = interpret("multi_label", ["a", "b", "c"], [0.0, -2.5, 4.1])
    assert several["labels"] == ["a", "c"]
    assert several["scores"]["b"] == pytest.approx(1 / (1 + math.exp(2.5)))
    assert interpret("multi_label", ["a"], [-1e4])["scores"] == {"a": 0.0}
    one = interpret("single_label", ["a", "b"], [1000.0, 1001.0])
    assert one["label"] == "b"
    assert one["score"] == pytest.approx(1 / (1 + math.exp(-1)))
    assert sum(one["scores"].values()) == pytest.approx(1)


def test_command_line(bundle: Bundle) -> None:
    for format in FORMATS:
        done = run_py("--bundle", bundle.path, "--format", format, "good film", "not good")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line["text"] for line in lines] == ["good film", "not good"]
        expected = Classifier(bundle.path, format).predict("good film")
        assert lines[0] == expected
        assert set(expected["scores"]) == {"bad", "so so", "good"}
    piped = run_py("--bundle", bundle.path, input="good film\n\nnaïve 東京\n")
    assert [json.loads(x)["text"] for x in piped.stdout.splitlines()] == [
        "good film",
        "",
        "naïve 東京",
    ]
    pairs = run_py("--bundle", bundle.path, "--pair", input="good\tbad\n")
    alone = run_py("--bundle", bundle.path, "--pair", "good", "bad")
    assert pairs.stdout == alone.stdout != ""
    odd = run_py("--bundle", bundle.path, "--pair", "good")
    assert (odd.returncode, odd.stderr.count("\n")) == (2, 1)
    assert run_py("--bundle", bundle.path.parent, "x").returncode == 2
    lacking = run_py("--bundle", bundle.path, "--provider", "tensorrt", "x")
    assert lacking.returncode == 3
    assert f'pip install "{bundle.manifest.requirements["onnx"][0]}"' in lacking.stderr


def test_rows_go_on_where_they_stopped(bundle: Bundle, tmp_path: Path) -> None:
    rows, out, whole = tmp_path / "rows.jsonl", tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    texts = [{"id": i, "text": "good " * i} for i in range(5)]
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in texts), encoding="utf-8")
    assert run_py("--bundle", bundle.path, "--rows", rows, "--out", whole).returncode == 0
    first, *lines = whole.read_text(encoding="utf-8").splitlines()
    assert json.loads(first)["bundle"] == describe_file(bundle.path / "manifest.json").sha256
    assert [json.loads(line)["id"] for line in lines] == [0, 1, 2, 3, 4]
    marked = lines[0].replace('"logits": [', '"logits": [42, ')  # would be lost if run again
    out.write_text(f"{first}\n{marked}\n{lines[1]}\n{lines[2][:20]}", encoding="utf-8")
    assert run_py("--bundle", bundle.path, "--rows", rows, "--out", out).returncode == 0
    assert out.read_text(encoding="utf-8").splitlines() == [first, marked, *lines[1:]]
    out.write_text(first[:30], encoding="utf-8")  # cut off in its first line
    assert run_py("--bundle", bundle.path, "--rows", rows, "--out", out).returncode == 0
    assert out.read_bytes() == whole.read_bytes()
    other = first.replace('"format": "onnx"', '"format": "tflite"')
    out.write_text(f"{other}\n{lines[0]}\n", encoding="utf-8")
    mixed = run_py("--bundle", bundle.path, "--rows", rows, "--out", out)
    assert mixed.returncode == 2
    assert "rows of another bundle" in mixed.stderr
    assert out.read_text(encoding="utf-8").splitlines() == [other, lines[0]]
    ids_only = Tokenizer.from_file(str(bundle.path / "tokenizer.json")).encode("good " * 4).ids
    rows.write_text(json.dumps({"id": 4, "ids": ids_only}), encoding="utf-8")  # no line end
    printed = run_py("--bundle", bundle.path, "--rows", rows)
    assert printed.stdout.splitlines() == [first, lines[4]]
    rows.write_text('{"id": 1, "text": "good"}\n{"id": 2, "te', encoding="utf-8")
    for file, fault in ((rows, "line 2: not a JSON object"), (tmp_path / "none", "cannot read")):
        broken = run_py("--bundle", bundle.path, "--rows", file)
        assert broken.returncode == 2
        assert fault in broken.stderr
        assert broken.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("--rows", "rows.jsonl"), ("--measure",)])
def test_an_altered_bundle_is_refused_on_the_device(
    bundle: Bundle, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": 0, "text": "good"}\n', encoding="utf-8")
    model = bundle.file("onnx")
    data = bytearray(model.read_bytes())
    data[-1] ^= 1
    model.write_bytes(data)
    done = run_py("--bundle", bundle.path, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "model.onnx is not the file that the manifest describes" in done.stderr
    assert done.stdout == ""


def test_a_runtime_older_than_the_manifest_names(bundle: Bundle) -> None:
    file = bundle.path / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    assert manifest["models"]["onnx"]["minimum_runtime"].startswith("onnxruntime 1.")
    manifest["models"]["onnx"]["minimum_runtime"] = "onnxruntime 99.1"
    file.write_text(json.dumps(manifest), encoding="utf-8")
    for words in (("good film",), ("--measure",), ("--check",)):
        done = run_py("--bundle", bundle.path, "--format", "onnx", *words)
        assert done.returncode == 3
        assert "is older than 99.1, which model.onnx needs" in done.stderr
        assert "pip install" in done.stderr


def test_missing_package_is_said_by_name(bundle: Bundle, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    broken.mkdir()
    (broken / "onnxruntime.py").write_text(
        "raise AttributeError('_ARRAY_API not found')", encoding="utf-8"
    )
    environment = {"PYTHONPATH": str(broken), "PATH": ""}
    done = run_py("--bundle", bundle.path, "--format", "onnx", "x", env=environment)
    assert done.returncode == 3
    assert f"onnxruntime does not load with numpy {np.__version__}" in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr
    (broken / "numpy.py").write_text("raise ImportError('built for another')", encoding="utf-8")
    done = run_py("--bundle", bundle.path, "x", env=environment)
    assert done.returncode != 0
    assert done.stderr.startswith("run.py cannot import numpy: built for another")


def test_python_of_an_old_raspberry_pi() -> None:
    source = RUN_PY.read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 9))
    assert "strict=True" not in source  # zip has it since 3.10


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("format", FORMATS)
def test_bundle_in_an_environment_without_torch(
    bundle: Bundle, format: Format, tmp_path: Path
) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    if uv := shutil.which("uv"):
        make = [uv, "venv", "--python", sys.executable, str(tmp_path / "venv")]
        install = [uv, "pip", "install", "--python", str(python)]
    else:
        make = [sys.executable, "-m", "venv", str(tmp_path / "venv")]
        install = [str(python), "-m", "pip", "install"]
    subprocess.run(make, check=True, capture_output=True)
    needs = bundle.manifest.requirements[format]
    subprocess.run([*install, *needs], check=True, capture_output=True)

    def run(*arguments: str) -> list[dict[str, Any]]:
        command = [str(python), "run.py", "--format", format, *arguments]
        done = subprocess.run(
            command, cwd=bundle.path, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    absent = "import importlib.util as u; print([u.find_spec(m) for m in ('torch', 'edgebert')])"
    said = subprocess.run([str(python), "-c", absent], capture_output=True, text=True, check=True)
    assert said.stdout == "[None, None]\n"
    assert (
        run("good film")[0]["label"]
        == Classifier(bundle.path, format).predict("good film")["label"]
    )
    assert run("--check")[0]["passed"]
    (cost,) = run("--measure", "--runs", "10")
    assert 0 < cost["p50_ms"] <= cost["p99_ms"]
    assert cost["peak_mb"] > cost["bare_mb"] > 0
