"""What a build refuses: data, checkpoints and folders that are not what they should be."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgebert import pipeline
from edgebert.pipeline.build_request import BuildRequest
from edgebert.targets.errors import InputError


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def request_of(edgebert: Any, **asked: Any) -> BuildRequest:
    """A build in this process, where what is tested is not the process."""
    ours = {"model": str(edgebert.model), "data": str(edgebert.data), "target": "android-arm64"}
    return BuildRequest(**(ours | asked))


def quick_request(edgebert: Any, **asked: Any) -> BuildRequest:
    scheme = "quantize.scheme=dynamic_wi8c_afp32"
    return request_of(edgebert, formats=("onnx",), overrides=(scheme,), max_drop=0.5, **asked)


def test_wrong_data(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    def build(data: Path) -> Any:
        words = ("--data", data, "--out", tmp_path / "out")
        return edgebert.build(*quick, *words)

    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    edgebert.expect_error(build(empty), 2, "0 usable rows", str(empty))

    malformed = tmp_path / "malformed.jsonl"
    malformed.write_text('{"text": "a", "label": "alarm"}\n{"text": "b"\n', encoding="utf-8")
    edgebert.expect_error(build(malformed), 2, "not JSON", f"{malformed}, line 2")

    one = tmp_path / "one.jsonl"
    one.write_text('{"text": "a", "label": "alarm"}\n', encoding="utf-8")
    edgebert.expect_error(build(one), 2, "rows")

    unknown = tmp_path / "unknown"
    shutil.copytree(edgebert.data, unknown)
    with (unknown / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "wake me up", "label": "alarms"}\n')
    done = build(unknown)
    edgebert.expect_error(
        done, 2, "unknown label 'alarms'", f"{unknown / 'test.jsonl'}, line 61", "alarm"
    )
    assert "export" not in done.stderr  # said before the work, not after it

    only_test = tmp_path / "only-test"
    only_test.mkdir()
    shutil.copy(edgebert.data / "test.jsonl", only_test)
    edgebert.expect_error(build(only_test), 2, "no dev rows", "only-test")
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
    edgebert.expect_error(done, 2, "model.safetensors")
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
    edgebert.expect_error(edgebert.build(*quick, "--out", out), 2, "thesis.docx", "--out")
    assert contents(out) == {"thesis.docx": b"ten years of work"}
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    edgebert.expect_error(edgebert.build(*quick, "--out", file), 2, str(file), "--out")
    edgebert.expect_error(edgebert.build(*quick, "--out", file / "below"), 2, str(file), "--out")
