"""Every family gives in ONNX what it gives in PyTorch, padding and all-padding rows included."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from int4_files import widened_onnx

from edgebert.pipeline.artifact import Checkpoint, Model, dotted
from edgebert.pipeline.families import all_families, find_family
from edgebert.pipeline.runtimes.onnx_file import all_nodes, duplicates
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages import onnx_weights
from edgebert.pipeline.stages.conformance import sample_inputs
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.onnx_loop import reads
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.targets.errors import InputError

TOLERANCE = 1e-5
# (batch, tokens): every fourth row is nothing but padding; 64 is the tiny models' limit.
SHAPES = ((4, 8), (2, 16), (5, 40), (4, 64))
# What a family's tiny configuration leaves out.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "modernbert-cls": ("modernbert", {"classifier_pooling": "cls"}),
    "deberta-v2-conv": ("deberta-v2", {"conv_kernel_size": 3, "conv_act": "gelu"}),
    "deberta-v2-own-keys": ("deberta-v2", {"share_att_key": False}),
    "deberta-v2-absolute": ("deberta-v2", {"relative_attention": False}),
    "bert-token": ("bert", {"task": "token"}),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in all_families()},
    **VARIANTS,
}
Reference = Callable[[Checkpoint, dict[str, torch.Tensor]], np.ndarray]
Exported = tuple[Checkpoint, Model]


@pytest.fixture(scope="module", params=CASES)
def exported(
    request: pytest.FixtureRequest,
    tiny_checkpoint: Callable[..., Checkpoint],
    tmp_path_factory: pytest.TempPathFactory,
) -> Exported:
    model_type, overrides = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    checkpoint = tiny_checkpoint(model_type, folder / "checkpoint", **overrides)
    return checkpoint, ExportOnnx()(checkpoint, folder / "onnx")


def run(model: Model, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(model.file), providers=["CPUExecutionProvider"])
    feeds = {name: tensor.numpy() for name, tensor in inputs.items()}
    logits: np.ndarray = session.run(["logits"], feeds)[0]
    return logits


def worst(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference; NaN has to meet NaN (mean pooling over an all-padding row)."""
    assert actual.shape == expected.shape
    assert np.array_equal(np.isnan(actual), np.isnan(expected))
    return float(np.nanmax(np.abs(actual - expected)))


def test_parity_with_pytorch(exported: Exported, reference: Reference) -> None:
    checkpoint, model = exported
    for batch, length in SHAPES:
        inputs = sample_inputs(checkpoint, batch, length, seed=length)
        assert worst(run(model, inputs), reference(checkpoint, inputs)) <= TOLERANCE, (
            batch,
            length,
        )


def test_an_ignored_mask_would_be_noticed(exported: Exported, reference: Reference) -> None:
    checkpoint, model = exported
    inputs = sample_inputs(checkpoint, 3, 16)  # no all-padding row
    ignored = inputs | {"attention_mask": torch.ones_like(inputs["attention_mask"])}
    assert worst(run(model, ignored), reference(checkpoint, inputs)) > 100 * TOLERANCE


def test_token_types_are_an_input_where_they_count(exported: Exported) -> None:
    checkpoint, model = exported
    names = {spec.name for spec in model.info.inputs}
    assert ("token_type_ids" in names) == checkpoint.has_token_type_ids
    if checkpoint.has_token_type_ids:
        inputs = sample_inputs(checkpoint, 3, 16)
        zeros = inputs | {"token_type_ids": torch.zeros_like(inputs["token_type_ids"])}
        assert worst(run(model, zeros), run(model, inputs)) > 100 * TOLERANCE


def test_the_family_describes_its_model(exported: Exported) -> None:
    checkpoint, model = exported
    family = checkpoint.family
    classifier = load_model(checkpoint)
    layers = dotted(classifier, family.layer_path)
    assert isinstance(layers, torch.nn.ModuleList)
    embedding = dotted(classifier, family.embedding_path)
    assert embedding is classifier.get_input_embeddings()
    assert len(model.info.inputs[0].shape) == 2
    assert checkpoint.max_length == (512 if family.pads_left else 64)


def test_an_unknown_family_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no family for model_type 'gpt2'") as error:
        find_family("gpt2", "config.json")
    assert "xlm-roberta" in error.value.cure


def test_no_shared_code_compares_a_family_name() -> None:
    sources = Path(__file__).parents[1].joinpath("pipeline").rglob("*.py")
    for source in sources:
        if source.parent.name != "families":
            text = source.read_text(encoding="utf-8")
            assert "model_type ==" not in text, source
            assert "model_type in" not in text, source


def test_no_leftovers_of_the_exporter(exported: Exported) -> None:
    """Shapes put together at run time, NaN guards, norms and activations written out."""
    _, model = exported
    nodes = list(all_nodes(onnx.load(model.file).graph))
    counts = Counter(node.op_type for node in nodes)
    unwanted = (
        *("IsNaN", "IsInf", "ConstantOfShape", "Constant", "Dropout", "Size"),
        *("Pow", "Erf", "Einsum", "GatherND"),
    )
    assert {operator: counts[operator] for operator in unwanted if counts[operator]} == {}
    assert counts["Identity"] == counts["Loop"]  # what tells a Loop to go on
    made = {output for node in nodes for output in node.output}
    assert [n.name for n in nodes if n.op_type == "Reshape" and n.input[1] in made] == []
    assert counts["Shape"] <= 4, "of the ids, for positions"


def test_nothing_is_stored_or_computed_in_vain(exported: Exported) -> None:
    """No weight twice, none that nothing reads, no node that the logits do not depend on."""
    proto = onnx.load(exported[1].file)
    assert duplicates(proto, larger_than=1) == ()
    needed, read = {output.name for output in proto.graph.output}, set[str]()
    for node in reversed(proto.graph.node):
        assert needed & set(node.output), node.name
        needed |= reads(node)
        read |= reads(node)
    assert {tensor.name for tensor in proto.graph.initializer} <= read


def test_int4(exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks and a smallest size that tiny models have."""
    monkeypatch.setattr(onnx_weights, "LARGE", 500)
    checkpoint, fp32 = exported
    scheme = replace(find_scheme("weight_only_wi4b128", "onnx"), block_size=32)
    model = QuantizeOnnx(scheme)(checkpoint, fp32, (), tmp_path)
    assert {"MatMulNBits", "GatherBlockQuantized"} <= set(model.info.operators)
    wide = onnx.load(model.file)
    session = onnxruntime.InferenceSession(widened_onnx(wide).SerializeToString())
    inputs = sample_inputs(checkpoint, 3, 16)
    expected = session.run(["logits"], {name: x.numpy() for name, x in inputs.items()})[0]
    # int8 activations are the difference
    assert np.abs(run(model, inputs) - expected).max() < 0.1 * np.abs(expected).max()
