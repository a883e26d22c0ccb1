"""The exported file: sharing, determinism, limits, and what it refuses."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter

from edgebert.pipeline.runtimes.tflite_file import TfliteFile
from edgebert.pipeline.runtimes.tflite_versions import minimum_runtime, newest_versions
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert, check_operators, usable_lengths
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
from edgebert.targets.errors import InputError

ALBERT = {
    "num_hidden_layers": 12,
    "hidden_size": 128,
    "embedding_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 512,
}


def duplicates(file: Path) -> list[tuple[int, ...]]:
    """Shapes of the buffers over 1 KB that are there twice."""
    large = [tensor for tensor in TfliteFile(file).stored if tensor.size_bytes > 1000]
    seen: set[str] = set()
    again = [t.shape for t in large if t.sha256 in seen or seen.add(t.sha256)]  # type: ignore[func-returns-value]
    return again


def test_albert_layer_is_stored_once(tiny_checkpoint: Any, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("albert", tmp_path / "checkpoint", **ALBERT)
    model = load_model(checkpoint)
    parameters = sum(p.numel() for p in model.parameters())
    fp32 = ExportLitert((8, 16))(checkpoint, tmp_path / "fp32")
    stored = TfliteFile(fp32.file).stored
    # Query, key, value and dense of one layer, and the pooler: not a second copy with gamma inside.
    assert sum(tensor.shape == (128, 128) for tensor in stored) == 5
    assert sum(tensor.size_bytes for tensor in stored) < parameters * 4 + 5_000
    # 12 layers of two lengths take some 90 bytes an operator.
    assert fp32.file.stat().st_size < parameters * 4 + 250_000
    assert not duplicates(fp32.file)

    scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
    int8 = QuantizeLitert(scheme)(checkpoint, fp32, (), tmp_path / "int8")
    stored = TfliteFile(int8.file).stored
    assert sum(tensor.shape == (128, 128) for tensor in stored) == 5
    assert sum(tensor.size_bytes for tensor in stored) < parameters + 20_000
    assert not duplicates(int8.file)


@pytest.fixture(scope="module")
def bert(tiny_checkpoint: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("bert")
    checkpoint = tiny_checkpoint("bert", folder / "checkpoint")
    return checkpoint, ExportLitert((8, 500))(checkpoint, folder / "fp32")


def test_lengths_over_the_models_are_capped(bert: Any) -> None:
    checkpoint, model = bert
    assert checkpoint.max_length == 64
    assert model.info.lengths == (8, 64)
    assert usable_lengths((128, 32, 64, 500), checkpoint) == (32, 64)
    with pytest.raises(InputError, match="1 or more"):
        usable_lengths((0,), checkpoint)


def test_positions_are_one_table(bert: Any) -> None:
    stored = TfliteFile(bert[1].file).stored
    assert [tensor.shape for tensor in stored if tensor.shape[-2:] in ((8, 32), (64, 32))] == [
        (64, 32),  # positions
        (64, 32),  # intermediate x hidden, two layers
        (64, 32),
    ]


def test_int64_is_refused(bert: Any) -> None:
    runner = Interpreter(str(bert[1].file)).get_signature_runner("s8")
    inputs = {name: np.ones((1, 8), np.int32) for name in runner.get_input_details()}
    assert {d["dtype"] for d in runner.get_input_details().values()} == {np.int32}
    assert runner(**inputs)["logits"].shape == (1, 3)
    with pytest.raises(ValueError, match="INT64"):
        runner(**{name: value.astype(np.int64) for name, value in inputs.items()})


def test_another_process_gives_the_same_bytes(bert: Any, tmp_path: Path) -> None:
    checkpoint, model = bert
    script = (
        "from pathlib import Path\n"
        "from edgebert.pipeline.artifact import Checkpoint\n"
        "from edgebert.pipeline.stages.export_litert import ExportLitert\n"
        f"checkpoint = Checkpoint(Path({str(checkpoint.path)!r}), 'other')\n"
        "ExportLitert((8, 500))(checkpoint, Path('out'))\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out/model.tflite").read_bytes() == model.file.read_bytes()


def test_token_classifier(tiny_checkpoint: Any, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("distilbert", tmp_path / "checkpoint", task="token")
    model = ExportLitert((8,))(checkpoint, tmp_path / "fp32")
    assert model.info.outputs[0].shape == (1, 8, 3)
    ids = torch.arange(20, 28)[None]
    with torch.no_grad():
        expected = load_model(checkpoint)(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    runner = Interpreter(str(model.file)).get_signature_runner("s8")
    ids32 = ids.numpy().astype(np.int32)
    found = runner(input_ids=ids32, attention_mask=np.ones_like(ids32))["logits"]
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-5)


def test_old_runtime_is_refused_by_operator(bert: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"FULLY_CONNECTED version 5 \(it has 4\)"):
        ExportLitert((8,), {"FULLY_CONNECTED": 4})(bert[0], tmp_path)


def test_foreign_operators_are_refused() -> None:
    with pytest.raises(InputError, match="not builtin: CUSTOM FlexEinsum"):
        check_operators({"ADD": 1, "CUSTOM FlexEinsum": 1}, {}, "model.tflite")


def test_versions() -> None:
    assert minimum_runtime({"ADD": 1, "GELU": 1, "FULLY_CONNECTED": 12}) == "2.17"
    assert minimum_runtime({"GATHER_ND": 5}) == "2.16"
    assert minimum_runtime({"ADD": 99}) == ""
    limits = newest_versions("2.14")
    assert (limits["GATHER_ND"], limits["FULLY_CONNECTED"]) == (4, 10)
    assert limits["EMBEDDING_LOOKUP"] == 3
    assert limits["STABLEHLO_COMPOSITE"] == 0
