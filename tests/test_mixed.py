"""Mixed precision: what each layer costs, which are left in fp32, and what a recipe may ask for."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from edgebert import pipeline
from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.build_result import BuildResult
from edgebert.pipeline.recipe import load_recipe
from edgebert.pipeline.runtimes import onnx_file
from edgebert.pipeline.runtimes.run import open_session
from edgebert.pipeline.runtimes.stored_tensor import layer_name
from edgebert.pipeline.runtimes.tflite_file import TfliteFile
from edgebert.pipeline.scheme_choice import fewest, match_layers
from edgebert.pipeline.schemes import SchemeError, find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.onnx_loop import unroll
from edgebert.pipeline.stages.onnx_mixed import mix, onnx_layers
from edgebert.pipeline.stages.onnx_weights import gemm_to_matmul
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.stages.sensitivity import MAX_DB, Sensitivity, read_sensitivity
from edgebert.targets.errors import InputError

Array = npt.NDArray[np.float32]
SIZES = {
    "vocab_size": 1000,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 128,
}
ONNX = (
    "dynamic_wi8c_afp32",
    "dynamic_wi8c_afp32_token",
    "static_wi8c_ai8",
    "static_wi8c_ai8_smooth",
    "weight_only_wi8b32",
)
SHARED = "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn"


def rows(count: int = 8) -> tuple[TokenRow, ...]:
    generator = np.random.default_rng(1)
    ids = [tuple(generator.integers(5, 150, n).tolist()) for n in generator.integers(4, 16, count)]
    return tuple(TokenRow(row, (0,) * len(row)) for row in ids)


def logits(file: Path) -> Array:
    session = open_session(file)
    return np.stack([session.logits(row.ids, row.type_ids) for row in rows()])


@pytest.fixture(scope="module")
def albert(tiny_checkpoint: Callable[..., Checkpoint], tmp_path_factory: Any) -> Checkpoint:
    folder = tmp_path_factory.mktemp("albert")
    sizes = SIZES | {"embedding_size": 64, "num_hidden_layers": 4}
    return tiny_checkpoint("albert", folder / "checkpoint", labels=7, **sizes)


@pytest.fixture(scope="module")
def onnx_model(albert: Checkpoint, tmp_path_factory: Any) -> Model:
    return ExportOnnx()(albert, tmp_path_factory.mktemp("onnx"))


@pytest.fixture(scope="module")
def tflite_model(albert: Checkpoint, tmp_path_factory: Any) -> Model:
    return ExportLitert((8, 16))(albert, tmp_path_factory.mktemp("tflite"))


@pytest.mark.parametrize("name", ONNX)
def test_layers_are_taken_from_either_graph(
    albert: Checkpoint, onnx_model: Model, name: str, tmp_path: Path
) -> None:
    """All layers quantized is the scheme itself; none is the fp32 graph; one lies between."""
    stage = QuantizeOnnx(find_scheme(name, "onnx"))
    full = logits(stage(albert, onnx_model, rows(), tmp_path / "full").file)
    fp32, quantized = stage._quantize(albert, onnx_model, rows())
    layers = onnx_layers(fp32)
    ids = np.array([rows()[0].ids])
    feed = {"input_ids": ids, "attention_mask": ids > 0, "token_type_ids": ids * 0}

    def run(chosen: set[str]) -> Any:
        proto = mix(fp32, quantized, chosen)
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        inputs = {each.name: feed[each.name].astype(np.int64) for each in session.get_inputs()}
        return session.run(None, inputs)[0][0]

    every = {layer.name for layer in layers}
    reference = logits(onnx_model.file)[0]
    assert np.abs(run(every) - full[0]).max() < 1e-2 * np.abs(reference).max()
    assert np.abs(run(set()) - reference).max() < 1e-5
    assert 0 < np.abs(run({SHARED}) - reference).max() < 0.2 * np.abs(reference).max()


@pytest.mark.parametrize("name", ONNX)
def test_a_shared_layer_left_in_fp32_is_stored_once(
    albert: Checkpoint, onnx_model: Model, name: str, tmp_path: Path
) -> None:
    stage = QuantizeOnnx(find_scheme(name, "onnx"), fp32_layers=(SHARED,))
    model = stage(albert, onnx_model, rows(), tmp_path)
    assert model.info.scheme == f"{name}_mixed"
    proto = unroll(onnx_file.load_proto(model.file))
    left = onnx_file.float_matrices(proto)
    assert [(layer_name(tensor.name), tensor.elements) for tensor in left] == [(SHARED, 128 * 256)]
    assert onnx_file.duplicates(proto, larger_than=1000) == ()
    assert sum(left[0].name in node.input for node in proto.graph.node) == 4  # depths


def test_tflite_leaves_a_shared_layer_in_fp32_once(
    albert: Checkpoint, tflite_model: Model, tmp_path: Path
) -> None:
    plain = QuantizeLitert(find_scheme("dynamic_wi8c_afp32", "tflite"))
    mixed = dataclasses.replace(plain, fp32_layers=(SHARED, "albert.embeddings.word_embeddings"))
    model = mixed(albert, tflite_model, (), tmp_path / "mixed")
    assert model.info.scheme == "dynamic_wi8c_afp32_mixed"
    large = [t for t in TfliteFile(model.file).stored if t.is_large]
    assert sorted(t.shape for t in large if t.dtype == "float32") == [(256, 128), (1000, 64)]
    int8 = plain(albert, tflite_model, (), tmp_path / "int8")
    grown = 3 * (256 * 128 + 1000 * 64)
    assert model.file.stat().st_size - int8.file.stat().st_size == pytest.approx(grown, rel=0.1)
    every = tuple(layer.name for layer in plain.layers(albert, tflite_model))
    same = dataclasses.replace(plain, fp32_layers=every)(albert, tflite_model, (), tmp_path / "all")
    expected = logits(tflite_model.file)
    errors = [np.abs(logits(each.file) - expected).mean() for each in (same, int8)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("format", ["onnx", "tflite"])
def test_sensitivity_is_that_of_each_layer_alone(
    albert: Checkpoint, onnx_model: Model, tflite_model: Model, format: Any, tmp_path: Path
) -> None:
    kind: Any = QuantizeOnnx if format == "onnx" else QuantizeLitert
    fp32 = onnx_model if format == "onnx" else tflite_model
    quantizer = kind(find_scheme("dynamic_wi8c_afp32", format))
    texts = tuple(Row(f"what is the weather {word}", None) for word in ("now", "then", "there"))
    data = Dataset("texts", (), texts, (), "")
    table = Sensitivity(quantizer, rows=3)(albert, fp32, (), data, tmp_path / "out")
    assert read_sensitivity(tmp_path / "out") == table
    assert [one.snr_db for one in table] == sorted(one.snr_db for one in table)
    assert {one.layer for one in table} == {x.name for x in quantizer.layers(albert, fp32)}
    by_name = {one.layer: one for one in table}
    assert by_name[SHARED].uses == 4
    assert by_name[SHARED].parameters == 128 * 256
    assert by_name["albert.embeddings.word_embeddings"].parameters == 64_000
    assert all(15 < one.snr_db < MAX_DB for one in table)
    # The costliest layers in fp32 bring more than the cheapest; of one alone that is no law, since
    # errors of two layers can make up for each other.
    names = [one.layer for one in table]
    expected = logits(fp32.file)
    first, last = (
        np.square(logits(model.file) - expected).sum()
        for model in (
            dataclasses.replace(quantizer, fp32_layers=tuple(kept))(
                albert, fp32, (), tmp_path / end
            )
            for end, kept in (("first", names[:4]), ("last", names[-4:]))
        )
    )
    assert first < last


def test_schemes_without_such_a_form_say_so(
    albert: Checkpoint, onnx_model: Model, tflite_model: Model, tmp_path: Path
) -> None:
    half = QuantizeOnnx(find_scheme("fp16", "onnx"), fp32_layers=(SHARED,))
    with pytest.raises(SchemeError, match="fp16 leaves no layer in fp32"):
        half(albert, onnx_model, (), tmp_path)
    rotated = QuantizeLitert(find_scheme("dynamic_wi8c_hr_afp32", "tflite"), {}, (SHARED,))
    with pytest.raises(SchemeError, match="leaves no layer in fp32"):
        rotated(albert, tflite_model, (), tmp_path)
    assert not half.mixable
    assert not rotated.mixable


def test_layers_of_a_file_have_the_names_of_the_checkpoint(
    albert: Checkpoint, onnx_model: Model, tflite_model: Model
) -> None:
    scheme = find_scheme("dynamic_wi8c_afp32", "onnx")
    found = {layer.name for layer in QuantizeOnnx(scheme).layers(albert, onnx_model)}
    proto = unroll(onnx_file.load_proto(onnx_model.file))
    gemm_to_matmul(proto)
    assert found == {layer.name for layer in onnx_layers(proto)}
    assert {SHARED, "classifier", "albert.embeddings.word_embeddings"} <= found
    lite = QuantizeLitert(find_scheme("dynamic_wi8c_afp32", "tflite"))
    assert {layer.name for layer in lite.layers(albert, tflite_model)} == found


@pytest.mark.parametrize(
    ("first", "most", "expected"), [(1, 8, 1), (5, 8, 5), (8, 8, 8), (9, 8, None), (1, 1, 1)]
)
def test_the_fewest_that_hold(first: int, most: int, expected: int | None) -> None:
    asked: list[int] = []

    def holds(count: int) -> bool:
        asked.append(count)
        return count >= first

    assert fewest(most, holds) == expected
    assert len(asked) <= 1 + most.bit_length()


def test_a_pattern_without_a_layer_names_the_nearest() -> None:
    names = ("bert.encoder.layer.0.output.dense", "bert.pooler.dense", "classifier")
    assert match_layers(["*.dense"], names) == names[:2]
    assert match_layers(["classifier", "bert.pooler*"], names) == names[1:]
    with pytest.raises(InputError, match="no layer is called 'clasifier'") as caught:
        match_layers(["classifier", "clasifier"], names)
    assert "nearest: classifier" in caught.value.where


@pytest.mark.parametrize("value", ['"dense"', "3", "[1]", "true"])
def test_a_setting_of_the_wrong_type_names_line_and_field(value: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'name = "mine"\n[quantize]\nfp32_layers = {value}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"quantize\.fp32_layers: .*\"auto\" or a list") as caught:
        load_recipe(str(file))
    assert caught.value.where.endswith("mine.toml:3")


def build(edgebert: Any, out: Path, *overrides: str, **changes: Any) -> BuildResult:
    fields: dict[str, Any] = {
        "model": str(edgebert.model),
        "data": str(edgebert.data),
        "target": "android-arm64",
        "formats": ("onnx",),
        "overrides": ("quantize.scheme=dynamic_wi8_afp32", *overrides),
        "out": out,
    }
    return pipeline.build(pipeline.BuildRequest(**(fields | changes)))


@pytest.fixture
def cache(edgebert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(edgebert.cache))


@pytest.mark.usefixtures("cache")
def test_layers_that_a_user_names_stay_in_fp32(edgebert: Any, tmp_path: Path) -> None:
    setting = 'quantize.fp32_layers=["classifier", "*.ffn"]'
    result = build(edgebert, tmp_path / "out", setting, max_drop=0.5)
    (trial,) = result.report.trials
    assert trial.scheme == "dynamic_wi8_afp32_mixed"
    assert trial.fp32_layers == (SHARED, "classifier")
    assert result.report.manifest.models["onnx"].scheme == trial.scheme
    assert "in fp32: " in result.text()
    with pytest.raises(InputError, match="no layer is called"):
        build(edgebert, tmp_path / "out", 'quantize.fp32_layers=["*.fnn"]')


@pytest.mark.usefixtures("cache")
def test_auto_says_what_cannot_be_reached(edgebert: Any, tmp_path: Path) -> None:
    """With one layer at most in fp32 a random model still answers differently."""
    settings = ("quantize.fp32_layers=auto", "quantize.fp32_share=0.1")
    result = build(edgebert, tmp_path / "out", *settings, max_drop=0.0)
    plain, mixed = result.report.trials
    if plain.drift is not None and plain.drift.metrics[0].drop <= 0:
        pytest.skip("this machine's int8 loses nothing")
    assert len(mixed.sensitivity) > 8
    assert mixed.fp32_layers == tuple(one.layer for one in mixed.sensitivity[:1])
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["trials"][1]["sensitivity"][0]["layer"] == mixed.fp32_layers[0]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Sensitivity of the layers" in page
    assert mixed.fp32_layers[0] in page
