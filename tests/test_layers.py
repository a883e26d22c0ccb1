"""Layer drift: that layers are found in every format, and that the one that was damaged shows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgebert.calibration import Row
from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.layers import EQUAL_DB, LayerDrift, LayerReport, with_added
from edgebert.pipeline.runtimes.onnx_activations import OnnxActivations
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.layer_drift import MeasureLayers, read_layers
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.targets import Format
from edgebert.targets.errors import InputError

TEXTS = ("what is the weather", "play some music", "book a flight", "not a good film", "hello you")
ROWS = [Row(text) for text in TEXTS]


@pytest.fixture(scope="module")
def checkpoint(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path_factory: pytest.TempPathFactory
) -> Checkpoint:
    folder = tmp_path_factory.mktemp("layers")
    return tiny_checkpoint("bert", folder / "checkpoint", num_hidden_layers=3)


@pytest.fixture(scope="module")
def exported(
    checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory
) -> dict[Format, Model]:
    folder = tmp_path_factory.mktemp("exported")
    return {
        "onnx": ExportOnnx()(checkpoint, folder / "onnx"),
        "tflite": ExportLitert((16, 32))(checkpoint, folder / "tflite"),
    }


@pytest.mark.parametrize("format", ["onnx", "tflite"])
def test_the_exported_file_is_the_checkpoint_at_every_layer(
    format: Format, checkpoint: Checkpoint, exported: dict[Format, Model], tmp_path: Path
) -> None:
    model = exported[format]
    report = MeasureLayers()(checkpoint, model, model, ROWS, tmp_path)
    names = [layer.name for layer in report.layers]
    assert names == ["embeddings", "layer 1", "layer 2", "layer 3"]
    for layer in report.layers:
        assert layer.snr_db is not None and layer.snr_db > 100 and not layer.by_value
    assert report.worst is None
    assert report.texts == len(ROWS) and read_layers(tmp_path) == report


@pytest.mark.parametrize("format", ["onnx", "tflite"])
def test_quantizing_shows_at_every_layer(
    format: Format, checkpoint: Checkpoint, exported: dict[Format, Model], tmp_path: Path
) -> None:
    scheme = find_scheme("dynamic_wi8c_afp32", format)
    quantize = QuantizeOnnx(scheme) if format == "onnx" else QuantizeLitert(scheme)
    quantized = quantize(checkpoint, exported[format], (), tmp_path / "model")
    report = MeasureLayers()(checkpoint, exported[format], quantized, ROWS, tmp_path / "layers")
    for layer in report.layers[1:]:
        assert layer.snr_db is not None and 15 < layer.snr_db < 60 and not layer.by_value
        assert layer.cosine_min is not None and layer.cosine_mean is not None
        assert 0.9 < layer.cosine_min <= layer.cosine_mean < 1
    assert "layer 3" in report.text() and " dB" in report.text()


def damage(model: Model, layer: int, folder: Path) -> Model:
    """The same ONNX file with noise on one layer's feed-forward weights."""
    proto = onnx.load(model.file)
    (tensor,) = (
        one for one in proto.graph.initializer if f"layer.{layer}.intermediate.dense.w" in one.name
    )
    value = numpy_helper.to_array(tensor)
    noise = np.random.default_rng(0).normal(size=value.shape) * 0.2 * value.std()
    tensor.CopyFrom(numpy_helper.from_array((value + noise).astype(np.float32), tensor.name))
    folder.mkdir()
    onnx.save(proto, folder / "model.onnx")
    return Model.write_info(folder, model.info)


def test_the_damaged_layer_is_the_one_that_is_named(
    checkpoint: Checkpoint, exported: dict[Format, Model], tmp_path: Path
) -> None:
    damaged = damage(exported["onnx"], 1, tmp_path / "model")
    report = MeasureLayers()(checkpoint, exported["onnx"], damaged, ROWS, tmp_path / "layers")
    before, after = report.layers[1], report.layers[2]
    assert before.snr_db is not None and before.snr_db > 100
    assert after.snr_db is not None and after.snr_db < 40
    assert report.worst is not None and report.worst.name == "layer 2"
    assert "most is added by layer 2" in report.text()


def test_renamed_tensors_are_found_by_value(
    checkpoint: Checkpoint, exported: dict[Format, Model], tmp_path: Path
) -> None:
    proto = onnx.load(exported["onnx"].file)
    renamed = {name: f"t{i}" for i, n in enumerate(proto.graph.node) for name in n.output}
    renamed.pop("logits")
    for node in proto.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(proto, folder / "model.onnx")
    model = Model.write_info(folder, exported["onnx"].info)
    report = MeasureLayers()(checkpoint, exported["onnx"], model, ROWS, tmp_path / "layers")
    assert [layer.by_value for layer in report.layers] == [True] * 4
    assert all(layer.snr_db is not None and layer.snr_db > 100 for layer in report.layers)


def test_each_pass_of_a_loop_is_a_layer(tmp_path: Path) -> None:
    """y = 2 x three times over: the states are 2 x, 4 x and 8 x."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Add", ["state", "state"], ["next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("pass", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["input_ids"], ["x"], to=TensorProto.FLOAT),
            helper.make_node("Loop", ["passes", "", "x"], ["y"], body=body),
        ],
        "graph",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "s"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(3), "passes")],
    )
    file = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), file)
    reader = OnnxActivations(file)
    reader.select(["y[1]", "x"])
    found = reader.run([1, 2, 3], [0, 0, 0])
    assert found["x"].tolist() == [[1, 2, 3]]
    assert [found[f"y[{i}]"].tolist() for i in range(3)] == [
        [[2, 4, 6]],
        [[4, 8, 12]],
        [[8, 16, 24]],
    ]


def test_what_a_layer_adds() -> None:
    def layer(name: str, snr_db: float) -> LayerDrift:
        return LayerDrift(name=name, snr_db=snr_db, cosine_mean=1.0, cosine_min=0.9)

    layers = with_added(
        [
            layer("embeddings", EQUAL_DB),
            layer("layer 1", 20.0),  # a tenth
            LayerDrift(name="layer 2"),  # not in the file
            layer("layer 3", 20 * np.log10(1 / 0.125)),  # an eighth
            layer("layer 4", 30.0),
        ]
    )
    added = [layer.added for layer in layers]
    assert added[1] == pytest.approx(0.1) and added[2] is None
    assert added[3] == pytest.approx(0.075)  # 0.125^2 = 0.1^2 + 0.075^2
    assert added[4] == 0.0
    report = LayerReport(
        format="onnx", scheme="fp32", texts=1, tokens=4, runtime="onnxruntime", layers=layers
    )
    assert report.worst is not None and report.worst.name == "layer 1"
    assert "layer 2      not in this file" in report.text()
    assert LayerReport.model_validate_json(report.model_dump_json()) == report


def test_layers_need_rows(
    checkpoint: Checkpoint, exported: dict[Format, Model], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="0 usable rows"):
        MeasureLayers()(checkpoint, exported["onnx"], exported["onnx"], [], tmp_path)
