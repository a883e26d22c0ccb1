"""Int4 in both formats: runtimes compute with the stored numbers, and the files are that small."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from int4_files import widened_onnx, widened_tflite
from safetensors.torch import load_file, save_file

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.catalogue import find_entry, parameter_count
from edgebert.pipeline.runtimes.onnx_file import load_proto, stored_tensors
from edgebert.pipeline.runtimes.run import open_session
from edgebert.pipeline.runtimes.tflite_file import TfliteFile
from edgebert.pipeline.runtimes.tflite_versions import newest_versions
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.stages.random_weights import write_random
from edgebert.targets.errors import InputError

Array = npt.NDArray[np.float32]
# Matrices over 10,000 elements; blocks of 64 do not divide the rows of the word table, 32.
SIZES = {
    "vocab_size": 600,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
}
ALBERT = SIZES | {"embedding_size": 32}
ROWS = [TokenRow(tuple(range(10, 10 + 7 * n, 7)), (0,) * n) for n in range(5, 13)]
SEEN = [TokenRow(tuple(range(12, 12 + 11 * n, 11)), (0,) * n) for n in range(4, 14)]  # calibration
ONNX = ("weight_only_wi4b32_gptq", "weight_only_wi4b128", "weight_only_wi4b128_gptq")
TFLITE = ("dynamic_wi4b64_afp32", "dynamic_wi4b64_afp32_gptq")


@pytest.fixture(scope="module", params=["bert", "albert"])
def checkpoint(
    request: pytest.FixtureRequest,
    tiny_checkpoint: Callable[..., Checkpoint],
    tmp_path_factory: pytest.TempPathFactory,
) -> Checkpoint:
    folder = tmp_path_factory.mktemp(request.param)
    return tiny_checkpoint(
        request.param, folder / "c", labels=7, **(SIZES, ALBERT)[request.param != "bert"]
    )


@pytest.fixture(scope="module")
def onnx_model(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return ExportOnnx()(checkpoint, tmp_path_factory.mktemp("onnx"))


@pytest.fixture(scope="module")
def tflite_model(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return ExportLitert((8, 16))(checkpoint, tmp_path_factory.mktemp("tflite"))


def logits(file: Path) -> Array:
    session = open_session(file)
    return np.stack([session.logits(row.ids, row.type_ids) for row in ROWS])


def distance(first: Array, second: Array) -> float:
    """Relative to the second."""
    return float(np.linalg.norm(first - second) / np.linalg.norm(second))


@pytest.mark.parametrize("name", ONNX)
def test_onnxruntime_computes_with_the_stored_numbers(
    name: str, checkpoint: Checkpoint, onnx_model: Model, tmp_path: Path
) -> None:
    model = QuantizeOnnx(find_scheme(name, "onnx"))(checkpoint, onnx_model, SEEN, tmp_path / "q")
    tables = find_scheme(name, "onnx").table_bits == 4
    assert ("GatherBlockQuantized" in model.info.operators) == tables
    assert model.info.ir_version == (10 if tables else onnx_model.info.ir_version)
    assert model.info.minimum_runtime == f"onnxruntime {'1.20' if tables else '1.17'}"
    wide = tmp_path / "wide.onnx"
    onnx.save(widened_onnx(load_proto(model.file)), wide)
    fp32, found, expected = (logits(file) for file in (onnx_model.file, model.file, wide))
    assert distance(found, expected) < 0.5 * distance(fp32, expected)  # int8 activations
    onnx.checker.check_model(str(wide))


@pytest.mark.parametrize("name", TFLITE)
def test_litert_computes_with_the_stored_numbers(
    name: str, checkpoint: Checkpoint, tflite_model: Model, tmp_path: Path
) -> None:
    scheme = find_scheme(name, "tflite")
    flat = QuantizeLitert(scheme, rolled=False)(checkpoint, tflite_model, SEEN, tmp_path / "flat")
    wide = tmp_path / "wide.tflite"
    assert widened_tflite(tflite_model.file, flat.file, wide) >= 6
    fp32, found, expected = (logits(file) for file in (tflite_model.file, flat.file, wide))
    assert distance(found, expected) < 0.5 * distance(fp32, expected)  # int8 activations

    rolled = QuantizeLitert(scheme)(checkpoint, tflite_model, SEEN, tmp_path / "rolled")
    np.testing.assert_allclose(logits(rolled.file), found, rtol=0, atol=1e-5)
    shared = checkpoint.family.model_type == "albert"
    assert ("WHILE" in rolled.info.operators) == shared
    assert rolled.info.minimum_runtime == "TensorFlow Lite 2.21"


def test_what_blocks_do_not_divide_is_int8(
    checkpoint: Checkpoint, tflite_model: Model, tmp_path: Path
) -> None:
    scheme = find_scheme("dynamic_wi4b64_afp32", "tflite")
    model = QuantizeLitert(scheme)(checkpoint, tflite_model, (), tmp_path)
    stored = TfliteFile(model.file).stored
    words = (600, ALBERT["embedding_size"] if "albert" in str(checkpoint.name) else 128)
    dtypes = {t.shape: (t.dtype, t.size_bytes) for t in stored if t.elements > 10_000}
    narrow = words[1] % 64 == 0
    assert dtypes[words] == (("int4", 38_400) if narrow else ("int8", 19_200))
    assert dtypes[(192, 128)] == ("int4", 12_288)  # read by a FULLY_CONNECTED


def test_inspect_knows_the_packed_matrices(
    checkpoint: Checkpoint, onnx_model: Model, tmp_path: Path
) -> None:
    scheme = find_scheme("weight_only_wi4b128", "onnx")
    model = QuantizeOnnx(scheme)(checkpoint, onnx_model, (), tmp_path)
    stored = {(t.operator, t.dtype, t.shape): t for t in stored_tensors(load_proto(model.file))}
    matrix = stored["MatMulNBits", "uint4", (192, 128)]
    assert (matrix.size_bytes, matrix.elements) == (12_288, 24_576)
    table = next(t for t in stored.values() if t.shape[:1] == (600,) and t.dtype == "uint4")
    assert table.operator == "GatherBlockQuantized"
    assert table.size_bytes == table.elements / 2


def test_old_runtimes_are_refused(
    checkpoint: Checkpoint, onnx_model: Model, tflite_model: Model, tmp_path: Path
) -> None:
    """Releases before ai-edge-litert 2.1 take version 13 and lower, and give other numbers."""
    scheme = find_scheme("dynamic_wi4b64_afp32", "tflite")
    with pytest.raises(InputError, match="FULLY_CONNECTED version 14"):
        stage = QuantizeLitert(scheme, newest_versions("2.14"))
        stage(checkpoint, tflite_model, (), tmp_path)
    with pytest.raises(InputError, match="IR version 10"):
        QuantizeOnnx(find_scheme("weight_only_wi4b128", "onnx"), max_ir_version=9)(
            checkpoint, onnx_model, (), tmp_path
        )


@pytest.mark.parametrize("name", ["weight_only_wi4b128_gptq", "dynamic_wi4b64_afp32_gptq"])
def test_gptq_needs_texts(
    name: str, checkpoint: Checkpoint, onnx_model: Model, tflite_model: Model, tmp_path: Path
) -> None:
    stage: Any = QuantizeOnnx(find_scheme(name, "onnx")) if name in ONNX else None
    stage = stage or QuantizeLitert(find_scheme(name, "tflite"))
    with pytest.raises(InputError, match="0 usable rows"):
        stage(checkpoint, onnx_model if name in ONNX else tflite_model, (), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["onnx", "tflite"])
def test_albert_base_takes_half_a_byte_a_parameter(format: str, tmp_path: Path) -> None:
    """Also with LayerNorms as training leaves them, which must not split the shared layer."""
    entry = find_entry("albert-base-v2")
    checkpoint = write_random(entry, ("bad", "good"), 0, tmp_path / "checkpoint")
    file = checkpoint.path / "model.safetensors"
    generator = torch.Generator().manual_seed(1)
    tensors = {
        name: torch.rand(tensor.shape, generator=generator) + 0.5 if tensor.ndim == 1 else tensor
        for name, tensor in load_file(file).items()
    }
    save_file(tensors, file, {"format": "pt"})
    if format == "onnx":
        fp32 = ExportOnnx()(checkpoint, tmp_path / "fp32")
        scheme = find_scheme("weight_only_wi4b128", "onnx")
        model = QuantizeOnnx(scheme)(checkpoint, fp32, (), tmp_path / "int4")
    else:
        fp32 = ExportLitert((32, 64, 128))(checkpoint, tmp_path / "fp32")
        scheme = find_scheme("dynamic_wi4b64_afp32", "tflite")
        model = QuantizeLitert(scheme)(checkpoint, fp32, (), tmp_path / "int4")
    assert model.file.stat().st_size <= 1.10 * parameter_count(entry) / 2
    assert distance(logits(model.file), logits(fp32.file)) < 0.5
