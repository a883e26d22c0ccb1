"""Inspect: sizes, parameters, operators and precision of bundles and checkpoints."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgebert import pipeline
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.stages.load import count_parameters
from edgebert.targets.errors import InputError


def test_bundle(edgebert: Any, built: Any) -> None:
    bundle, _ = built
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    found = json.loads(edgebert("inspect", bundle, "--json").stdout)
    assert found["kind"] == "bundle"
    assert found["family"] == "albert"
    assert found["passed"] is True
    assert found["labels"] == 3
    assert found["parameters"] == manifest["parameters"]
    for file, format in zip(found["files"], ("onnx", "tflite"), strict=True):
        entry = manifest["models"][format]
        assert file["file"] == entry["file"]
        assert file["bytes"] == (bundle / entry["file"]).stat().st_size
        assert file["operators"] == entry["operators"]
        assert file["scheme"] == entry["scheme"]
        assert 0 < sum(file["bytes_by_dtype"].values()) < file["bytes"]
        assert "int8" in file["bytes_by_dtype"]
        by_operator = file["bytes_by_operator"]
        assert sum(by_operator.values()) == sum(file["bytes_by_dtype"].values())
        assert list(by_operator.values()) == sorted(by_operator.values(), reverse=True)
        assert {"Gather", "EMBEDDING_LOOKUP"} & set(by_operator)
        sizes = [tensor["bytes"] for tensor in file["largest"]]
        assert sizes == sorted(sizes, reverse=True)
    text = edgebert("inspect", bundle).stdout
    for part in (
        "model.onnx",
        "model.tflite",
        "int8",
        "parameters",
        "weights by operator",
        "operators: ",
        "gates passed",
    ):
        assert part in text


def test_layers_and_summary_of_a_bundle(edgebert: Any, built: Any, tmp_path: Path) -> None:
    bundle, _ = built
    found = json.loads(edgebert("inspect", bundle, "--layers", "--json").stdout)["layers"]
    assert [one["format"] for one in found] == ["onnx", "tflite"]
    for one in found:
        assert one["layers"][0]["name"] == "embeddings"
        assert all(layer["snr_db"] > 5 for layer in one["layers"])
    text = edgebert("inspect", bundle, "--layers").stdout
    assert "embeddings" in text and " dB" in text and "operators" not in text
    done = edgebert("inspect", edgebert.model, "--layers")
    edgebert.expect_error(done, 2, "a checkpoint is what layers are compared with")
    assert "| drift (onnx) |" in edgebert("inspect", bundle, "--markdown").stdout
    bare = tmp_path / "bare"
    shutil.copytree(bundle, bare)
    (bare / "report.json").unlink()
    edgebert.expect_error(edgebert("inspect", bare, "--layers"), 2, "no report", "report.json")


def test_checkpoint(edgebert: Any) -> None:
    found = json.loads(edgebert("inspect", edgebert.model, "--json").stdout)
    checkpoint = Checkpoint(edgebert.model, "tiny")
    assert found["kind"] == "checkpoint"
    assert found["passed"] is None
    assert found["parameters"] == count_parameters(checkpoint)
    assert found["max_length"] == checkpoint.max_length
    assert found["files"][0]["bytes_by_dtype"] == {"F32": 4 * found["parameters"]}
    assert f"{found['parameters']:,} parameters" in edgebert("inspect", edgebert.model).stdout


def test_shards_and_half_precision(edgebert: Any, tmp_path: Path) -> None:
    folder = tmp_path / "sharded"
    shutil.copytree(edgebert.model, folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        dtype = torch.bfloat16 if number == 1 else torch.float32
        shard = {name: tensors[name].to(dtype) for name in part}
        save_file(shard, folder / f"model-0000{number}-of-00002.safetensors", {"format": "pt"})
    found = pipeline.inspect(folder)
    assert found.parameters == pipeline.inspect(edgebert.model).parameters
    counts = [sum(tensors[name].numel() for name in part) for part in (names[::2], names[1::2])]
    assert found.files[0].bytes_by_dtype == {"BF16": 2 * counts[0]}
    assert found.files[1].bytes_by_dtype == {"F32": 4 * counts[1]}


def test_what_is_neither(tmp_path: Path, edgebert: Any) -> None:
    with pytest.raises(InputError, match="neither a bundle"):
        pipeline.inspect(tmp_path)
    short = tmp_path / "short"
    shutil.copytree(edgebert.model, short)
    whole = (short / "model.safetensors").read_bytes()
    (short / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not whole"):
        pipeline.inspect(short)
    (short / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"no \.safetensors"):
        pipeline.inspect(short)
    (short / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.json"):
        pipeline.inspect(short)
