"""The exported ONNX file: each weight once, nothing of this machine, the same bytes every time."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from safetensors.torch import load_file, save_file

from edgebert.pipeline.artifact import Checkpoint, TensorSpec
from edgebert.pipeline.runtimes import onnx_size
from edgebert.pipeline.runtimes.onnx_file import duplicates
from edgebert.pipeline.runtimes.run import RunError, open_session
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages import export_onnx
from edgebert.pipeline.stages.conformance import check_onnx, sample_inputs
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.load import count_parameters
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.targets.errors import EdgebertError, InputError

TinyCheckpoint = Callable[..., Checkpoint]


def test_the_shared_layer_of_albert_is_stored_once(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint(
        "albert",
        tmp_path / "albert",
        vocab_size=8000,
        embedding_size=128,
        hidden_size=256,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=1024,
    )
    model = ExportOnnx()(checkpoint, tmp_path / "onnx")
    assert model.file.stat().st_size <= 1.02 * 4 * count_parameters(checkpoint)
    assert duplicates(onnx.load(model.file), larger_than=1) == ()
    assert [file.name for file in sorted(model.path.iterdir())] == ["model.json", "model.onnx"]


def test_copies_of_a_shared_layer_come_out_as_one(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    once = tiny_checkpoint("albert", tmp_path / "once")
    twice = tiny_checkpoint("albert", tmp_path / "twice", num_hidden_groups=3)
    tensors = load_file(once.path / "model.safetensors")
    prefix = "albert.encoder.albert_layer_groups."
    for name in [name for name in tensors if name.startswith(f"{prefix}0.")]:
        for group in (1, 2):
            tensors[name.replace(f"{prefix}0", f"{prefix}{group}")] = tensors[name].clone()
    save_file(tensors, twice.path / "model.safetensors", {"format": "pt"})
    models = [ExportOnnx()(each, tmp_path / each.path.name / "onnx") for each in (once, twice)]
    protos = [onnx.load(model.file) for model in models]
    for proto in protos:
        assert [node.op_type for node in proto.graph.node].count("Loop") == 1
    assert len(protos[0].graph.initializer) == len(protos[1].graph.initializer)


def refusing_large(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool, failing as protobuf does on a graph that cannot be handed over in one piece."""

    def guarded(proto: onnx.ModelProto, *arguments: Any) -> Any:
        assert onnx_size.weight_bytes(proto) <= onnx_size.INLINE_LIMIT, "Failed to serialize proto"
        return tool(proto, *arguments)

    return guarded


def test_weights_over_the_limit_of_one_file(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "checkpoint")
    inputs = sample_inputs(checkpoint, batch=1, length=12)
    whole = ExportOnnx()(checkpoint, tmp_path / "whole")
    monkeypatch.setattr(onnx_size, "INLINE_LIMIT", 20_000)  # 1.9 GB in earnest
    for module, name in (
        (onnx.shape_inference, "infer_shapes"),
        (onnx.version_converter, "convert_version"),
    ):
        monkeypatch.setattr(module, name, refusing_large(getattr(module, name)))
    parted = ExportOnnx()(checkpoint, tmp_path / "parted")
    older = ExportOnnx(max_opset=17, max_ir_version=8)(checkpoint, tmp_path / "older")
    scheme = find_scheme("dynamic_wi8c_afp32", "onnx")
    quantized = QuantizeOnnx(scheme)(checkpoint, parted, (), tmp_path / "quantized")
    row = inputs["input_ids"][0].tolist()
    logits = []
    for model in (whole, parted, quantized, older):
        names = {file.name for file in model.path.iterdir()}
        assert ("model.onnx.data" in names) == (model is not whole)
        logits.append(open_session(model.file).logits(row, [0] * len(row)))
    assert parted.file.stat().st_size < 0.5 * parted.size_mb * 1e6
    assert abs(whole.size_mb - parted.size_mb) < 0.05 * whole.size_mb
    assert np.array_equal(logits[0], logits[1])
    assert np.abs(logits[2] - logits[0]).max() < 0.1
    (parted.path / "model.onnx.data").unlink()
    with pytest.raises(RunError, match="cannot load"):
        open_session(parted.file)


def test_a_small_albert_does_not_grow(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint(
        "albert",
        tmp_path / "albert",
        labels=2,
        vocab_size=1000,
        embedding_size=64,
        hidden_size=128,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=512,
    )
    source = (checkpoint.path / "model.safetensors").stat().st_size
    model = ExportOnnx()(checkpoint, tmp_path / "onnx")
    assert model.file.stat().st_size <= 1.15 * source


EXPORT = """
import sys
from pathlib import Path
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.stages.export_onnx import ExportOnnx
ExportOnnx()(Checkpoint(Path(sys.argv[1]), "x"), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("model_type", ["albert", "modernbert"])
def test_two_processes_write_the_same_bytes(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "checkpoint")
    digests = set()
    for seed in ("1", "4"):  # string hashes, and with them the order of sets, differ
        out = tmp_path / f"onnx{seed}"
        command = [sys.executable, "-c", EXPORT, str(checkpoint.path), str(out)]
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, check=True)
        content = (out / "model.onnx").read_bytes() + (out / "model.json").read_bytes()
        digests.add(hashlib.sha256(content).hexdigest())
    assert len(digests) == 1


def test_nothing_of_this_machine_is_in_the_file(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    model = ExportOnnx()(tiny_checkpoint("bert", tmp_path / "bert"), tmp_path / "onnx")
    content = model.file.read_bytes()
    for trace in (b".py", b"stack_trace", str(tmp_path).encode(), str(Path.cwd()).encode()):
        assert trace not in content


@pytest.mark.parametrize(("opset", "ir_version"), [(20, 9), (19, 9), (18, 8), (17, 8)])
def test_opset_and_ir_version_stay_within_the_target(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, opset: int, ir_version: int
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "bert")
    info = ExportOnnx(opset, ir_version)(checkpoint, tmp_path / "onnx").info
    assert info.opset == opset
    assert info.ir_version is not None
    assert info.ir_version <= ir_version
    assert info.operators["LayerNormalization"] == 17
    assert max(info.operators.values()) <= opset


@pytest.mark.parametrize(
    ("limits", "message"), [((12, 8), "no form in opset 12"), ((20, 8), "needs IR version 9")]
)
def test_what_a_target_cannot_take_is_refused(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, limits: tuple[int, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ExportOnnx(*limits)(tiny_checkpoint("bert", tmp_path / "bert"), tmp_path / "onnx")


def test_inputs_of_different_shapes_are_refused() -> None:
    ids = TensorSpec(name="input_ids", dtype="int64", shape=("batch", "seq"))
    frozen = TensorSpec(name="attention_mask", dtype="int64", shape=(2, 16))
    with pytest.raises(EdgebertError, match=r"attention_mask \[2, 16\]"):
        export_onnx._check_shapes((ids, frozen))
    export_onnx._check_shapes((ids, ids))


def test_a_graph_that_computes_something_else_is_refused(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "bert")
    model = ExportOnnx()(checkpoint, tmp_path / "onnx")
    inputs = sample_inputs(checkpoint, batch=4, length=12)
    with pytest.raises(EdgebertError, match="differs from PyTorch"):
        check_onnx(model.file, inputs, np.zeros((4, 3), np.float32))


def test_sample_inputs_pad_on_the_family_side(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    for model_type, side in (("bert", 0), ("xlnet", -1)):
        checkpoint = tiny_checkpoint(model_type, tmp_path / model_type)
        inputs = sample_inputs(checkpoint, batch=4, length=9)
        assert inputs["attention_mask"].sum(dim=1).tolist() == [9, 6, 1, 0]
        assert inputs["attention_mask"][2, side] == 1
        padding = inputs["input_ids"][inputs["attention_mask"] == 0]
        assert set(padding.tolist()) == {checkpoint.config.pad_token_id}
