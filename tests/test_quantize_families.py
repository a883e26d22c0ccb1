"""Families that are not built like BERT, quantized at sizes that leave nothing in fp32."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.runtimes.onnx_file import duplicates, float_matrices, load_proto
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.conformance import sample_inputs
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx

Exported = tuple[Checkpoint, Model]
LAYERS = 2
BERT_SIZES = {"hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 256}
SIZES: dict[str, dict[str, int]] = {
    "convbert": {**BERT_SIZES, "embedding_size": 128},
    "deberta-v2": {**BERT_SIZES, "position_buckets": 64, "max_position_embeddings": 128},
    "mobilebert": {**BERT_SIZES, "embedding_size": 128, "intra_bottleneck_size": 128},
    "xlnet": {"d_model": 128, "n_head": 4, "d_inner": 256},
}
# Stored matrices of a layer, and of the head.
PRODUCTS = {"convbert": (8, 2), "deberta-v2": (6, 2), "mobilebert": (16, 1), "xlnet": (7, 2)}


@pytest.fixture(scope="module", params=SIZES)
def exported(
    request: pytest.FixtureRequest,
    tiny_checkpoint: Callable[..., Checkpoint],
    tmp_path_factory: pytest.TempPathFactory,
) -> Exported:
    folder = tmp_path_factory.mktemp(request.param)
    sizes = SIZES[request.param]
    checkpoint = tiny_checkpoint(
        request.param, folder / "checkpoint", labels=7, vocab_size=1000, **sizes
    )
    return checkpoint, ExportOnnx()(checkpoint, folder / "fp32")


def logits(model: Model, inputs: dict[str, Any]) -> Any:
    session = onnxruntime.InferenceSession(str(model.file), providers=["CPUExecutionProvider"])
    return session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})[0]


@pytest.mark.parametrize(
    "name",
    [
        "dynamic_wi8c_afp32",
        "dynamic_wi8c_afp32_token",
        "static_wi8c_ai8_smooth",
        "weight_only_wi8b32",
    ],
)
def test_all_matrices_are_quantized(exported: Exported, name: str, tmp_path: Path) -> None:
    checkpoint, fp32 = exported
    generator = np.random.default_rng(1)
    rows = tuple(
        TokenRow(tuple(generator.integers(6, 1000, 20).tolist()), (0,) * 20) for _ in range(12)
    )
    model = QuantizeOnnx(find_scheme(name, "onnx"))(checkpoint, fp32, rows, tmp_path)
    proto = load_proto(model.file)
    assert float_matrices(proto) == () == duplicates(proto)
    if name == "dynamic_wi8c_afp32":
        counts = Counter(node.op_type for node in proto.graph.node)
        each, head = PRODUCTS[checkpoint.config.model_type]
        assert counts["MatMulInteger"] == each * LAYERS + head
    inputs = sample_inputs(checkpoint, batch=1, length=20)
    reference, actual = logits(fp32, inputs)[0], logits(model, inputs)[0]
    cosine = reference @ actual / np.linalg.norm(reference) / np.linalg.norm(actual)
    assert cosine > 0.97
    assert np.abs(reference - actual).max() > 1e-5
