"""What a checkpoint holds beside its classifier stays out of the exported file, in both formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.runtimes.onnx_file import load_proto, stored_tensors
from edgebert.pipeline.runtimes.tflite_file import TfliteFile
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.targets import Format

TinyCheckpoint = Callable[..., Checkpoint]
FAMILIES = ("albert", "bert", "distilbert", "electra", "roberta")
WORDS = 160  # no other dimension of the tiny models


def add_language_model(checkpoint: Checkpoint) -> list[str]:
    """Save a masked language model's head too, its decoder tied; returns the names of its tensors.

    A checkpoint has it after fine-tuning on from such a model, or when both were saved together.
    """
    file = checkpoint.path / "model.safetensors"
    tensors = load_file(file)
    embedding = tensors[f"{checkpoint.family.embedding_path}.weight"]
    model: Any = AutoModelForMaskedLM.from_config(checkpoint.config)
    head = {name: value for name, value in model.state_dict().items() if name not in tensors}
    for name, value in head.items():
        tensors[name] = embedding.clone() if value.shape == embedding.shape else value.clone()
    save_file(tensors, file, {"format": "pt"})
    return [name for name, value in head.items() if WORDS in value.shape]


def shapes(model: Model) -> list[tuple[int, ...]]:
    """Of all that the file stores."""
    if model.info.format == "onnx":
        return [tensor.shape for tensor in stored_tensors(load_proto(model.file))]
    return [tensor.shape for tensor in TfliteFile(model.file).stored]


def export(checkpoint: Checkpoint, format: Format, out: Path) -> Model:
    return (ExportOnnx() if format == "onnx" else ExportLitert((8, 16)))(checkpoint, out)


@pytest.mark.parametrize(
    ("model_type", "format"),
    [*((name, "onnx") for name in FAMILIES), ("albert", "tflite"), ("bert", "tflite")],
)
def test_a_tied_language_model_head(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str, format: Format
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "checkpoint")
    without = shapes(export(checkpoint, format, tmp_path / "without"))
    assert len(add_language_model(checkpoint)) > 1
    found = shapes(export(checkpoint, format, tmp_path / "with"))
    assert len([shape for shape in found if WORDS in shape]) == 1
    assert found == without


@pytest.mark.parametrize("format", ["onnx", "tflite"])
def test_a_pooler_that_a_token_classifier_does_not_use(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, format: Format
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "checkpoint", task="token")
    without = shapes(export(checkpoint, format, tmp_path / "without"))
    file = checkpoint.path / "model.safetensors"
    tensors = load_file(file)
    assert "bert.pooler.dense.weight" not in tensors
    tensors["bert.pooler.dense.weight"] = tensors["bert.encoder.layer.0.output.dense.weight"][
        :, :32
    ]
    tensors["bert.pooler.dense.bias"] = tensors["bert.encoder.layer.0.output.dense.bias"]
    copies = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    save_file(copies, file, {"format": "pt"})
    assert shapes(export(checkpoint, format, tmp_path / "with")) == without
