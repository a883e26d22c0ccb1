"""Shared layers are one Loop, which computes in every scheme what the written-out graph does."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.schemes import ONNX, Scheme
from edgebert.pipeline.stages.conformance import sample_inputs
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.onnx_loop import roll, unroll, with_hidden_states
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx

Exported = tuple[Checkpoint, Model]
ROWS = tuple(TokenRow(tuple(range(first, first + 12)), (0,) * 12) for first in range(6, 90, 12))
GROUPS = {
    "shared": ({"num_hidden_layers": 4}, [4]),
    "groups": ({"num_hidden_groups": 2, "num_hidden_layers": 6}, [3, 3]),
    "inner": ({"inner_group_num": 2, "num_hidden_layers": 2}, [2]),
    "both": ({"num_hidden_groups": 2, "inner_group_num": 2, "num_hidden_layers": 4}, [2, 2]),
}


@pytest.fixture(scope="module")
def albert(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    folder = tmp_path_factory.mktemp("albert")
    checkpoint = tiny_checkpoint("albert", folder / "checkpoint", num_hidden_layers=4)
    return checkpoint, ExportOnnx()(checkpoint, folder / "onnx")


def loops(proto: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in proto.graph.node if node.op_type == "Loop"]


def run(proto: onnx.ModelProto, inputs: dict[str, torch.Tensor]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, {name: value.numpy() for name, value in inputs.items()}))


@pytest.mark.parametrize("name", GROUPS)
def test_layers_shared_in_groups_are_a_loop_each(
    name: str, tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    settings, passes = GROUPS[name]
    checkpoint = tiny_checkpoint("albert", tmp_path / "checkpoint", **settings)
    proto = with_hidden_states(onnx.load(ExportOnnx()(checkpoint, tmp_path / "onnx").file))
    onnx.checker.check_model(proto)
    assert len(loops(proto)) == len(passes)
    inputs = sample_inputs(checkpoint, batch=3, length=12)
    logits, *states = run(proto, inputs)
    with torch.no_grad():
        expected = load_model(checkpoint)(**inputs, output_hidden_states=True)
    assert np.abs(logits - expected.logits.numpy()).max() < 1e-5
    assert [len(state) for state in states] == passes
    inner = checkpoint.config.inner_group_num  # transformers gives the states inside a group too
    wanted = np.stack([state.numpy() for state in expected.hidden_states[inner::inner]])
    real = inputs["attention_mask"].bool().numpy()  # padding starts as the first token
    assert np.abs(np.concatenate(states) - wanted)[:, real].max() < 1e-4


@pytest.mark.parametrize(
    "scheme", [scheme for scheme in ONNX if not scheme.trained], ids=lambda scheme: scheme.name
)
def test_every_scheme_computes_what_it_did_written_out(
    scheme: Scheme, albert: Exported, tmp_path: Path
) -> None:
    checkpoint, fp32 = albert
    model = QuantizeOnnx(scheme, max_opset=21)(checkpoint, fp32, ROWS, tmp_path)
    proto = onnx.load(model.file)
    assert len(loops(proto)) == 1
    assert "Loop" in model.info.operators and "MatMul" in model.info.operators
    inputs = sample_inputs(checkpoint, batch=4, length=12)
    (rolled,) = run(proto, inputs)
    (unrolled,) = run(unroll(proto), inputs)
    assert not loops(proto)
    # onnxruntime widens fp16 on a CPU and rounds where it has to: at the ends of every pass.
    tolerance = 2e-3 if scheme.weight_bits == 16 else 2e-6
    np.testing.assert_allclose(rolled, unrolled, rtol=0, atol=tolerance)


def test_what_differs_between_depths_is_read_from_a_table(albert: Exported) -> None:
    checkpoint, fp32 = albert
    proto = unroll(onnx.load(fp32.file))
    biases = [n for n in proto.graph.node if n.op_type == "Add" and "ffn.bias" in n.input[1]]
    rng = np.random.default_rng(0)
    for depth, node in enumerate(biases):  # as NNCF does where it corrects biases
        value = rng.normal(size=64).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(value, f"bias_{depth}"))
        node.input[1] = f"bias_{depth}"
    inputs = sample_inputs(checkpoint, batch=3, length=12)
    (expected,) = run(proto, inputs)
    assert roll(proto) == 1
    assert [4, 64] in [list(tensor.dims) for tensor in proto.graph.initializer]
    np.testing.assert_allclose(run(proto, inputs)[0], expected, rtol=0, atol=2e-6)
    np.testing.assert_allclose(run(unroll(proto), inputs)[0], expected, rtol=0, atol=2e-6)


def test_layers_with_weights_of_their_own_stay_written_out(
    tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "checkpoint")
    proto = onnx.load(ExportOnnx()(checkpoint, tmp_path / "onnx").file)
    assert roll(proto) == 0 and not loops(proto)


def test_a_graph_whose_inside_is_read_elsewhere_stays_written_out(albert: Exported) -> None:
    proto = unroll(onnx.load(albert[1].file))
    inner = next(node for node in proto.graph.node if node.op_type == "Softmax").output[0]
    proto.graph.output.append(
        onnx.helper.make_tensor_value_info(inner, onnx.TensorProto.FLOAT, ["a", "b", "c", "d"])
    )
    assert roll(proto) == 0
