"""Every family as TFLite: three lengths in one file give what transformers gives in PyTorch."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter
from int4_files import widened_tflite

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.families import all_families
from edgebert.pipeline.runtimes.tflite_file import TfliteFile
from edgebert.pipeline.runtimes.tflite_versions import newest_versions
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages import quantize_litert, tflite_blocks
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert

LENGTHS = (8, 16, 40)
TOLERANCE = 1e-5
Inputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Exported:
    checkpoint: Checkpoint
    model: Model
    torch_model: Any


@pytest.fixture(scope="module", params=sorted(all_families()))
def exported(
    request: pytest.FixtureRequest, tiny_checkpoint: Any, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    folder = tmp_path_factory.mktemp(request.param)
    checkpoint = tiny_checkpoint(request.param, folder / "checkpoint")
    model = ExportLitert(LENGTHS)(checkpoint, folder / "fp32")
    return Exported(checkpoint, model, load_model(checkpoint))


def make_inputs(checkpoint: Checkpoint, length: int, real: int) -> Inputs:
    """One row of `real` random tokens, padded to `length` on the family's side."""
    generator = torch.Generator().manual_seed(length * 100 + real)
    own = slice(length - real, length) if checkpoint.family.pads_left else slice(0, real)
    ids = torch.full((1, length), int(checkpoint.config.pad_token_id or 0))
    mask = torch.zeros(1, length, dtype=torch.long)
    ids[0, own] = torch.randint(10, 150, (real,), generator=generator)
    mask[0, own] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    if checkpoint.has_token_type_ids:
        inputs["token_type_ids"] = torch.zeros(1, length, dtype=torch.long)
        inputs["token_type_ids"][0, own.start + real // 2 : own.stop] = 1
    return inputs


def run(interpreter: Interpreter, inputs: Inputs) -> np.ndarray[Any, Any]:
    runner = interpreter.get_signature_runner(f"s{inputs['input_ids'].shape[1]}")
    result = runner(**{name: value.numpy().astype(np.int32) for name, value in inputs.items()})
    return np.array(result["logits"])


def expected(exported: Exported, inputs: Inputs) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        logits: np.ndarray[Any, Any] = exported.torch_model(**inputs).logits.numpy()
    return logits


def test_parity(exported: Exported) -> None:
    interpreter = Interpreter(str(exported.model.file))
    for length in LENGTHS:
        for real in (length, length // 2, 1, 0):
            inputs = make_inputs(exported.checkpoint, length, real)
            reference = expected(exported, inputs)
            if real == 0 and not np.isfinite(reference).all():
                continue  # ModernBERT's mean over no token is no number in PyTorch either
            found = run(interpreter, inputs)
            np.testing.assert_allclose(
                found, reference, rtol=0, atol=TOLERANCE, err_msg=f"{real} of {length} tokens"
            )
            assert np.abs(reference).max() > 0.05, "logits this small would hide a dropped mask"


def test_file(exported: Exported) -> None:
    info, tflite = exported.model.info, TfliteFile(exported.model.file)
    names = ["attention_mask", "input_ids"]
    names += ["token_type_ids"] if exported.checkpoint.has_token_type_ids else []
    inputs = [(spec.name, spec.dtype, spec.shape) for spec in info.inputs]
    assert inputs == [(name, "int32", (1, 40)) for name in names]
    assert [(o.name, o.dtype) for o in info.outputs] == [("logits", "float32")]
    assert info.lengths == LENGTHS
    assert info.operators == tflite.operators
    assert info.minimum_runtime, "an operator is missing in FIRST_RELEASE"
    limits = newest_versions("2.14")
    newer = {name: v for name, v in info.operators.items() if v > limits.get(name, v)}
    assert not newer, "tflite-runtime 2.14 refuses these"


def test_weights_are_stored_once(exported: Exported) -> None:
    stored = TfliteFile(exported.model.file).stored
    assert len({tensor.sha256 for tensor in stored}) == len(stored)
    parameters = Counter(
        tuple(p.flatten(1).shape) for p in exported.torch_model.parameters() if p.ndim > 1
    )
    copies = Counter(tensor.shape for tensor in stored)
    assert not {shape: copies[shape] for shape in parameters if copies[shape] > parameters[shape]}
    words = tuple(exported.torch_model.get_input_embeddings().weight.shape)
    assert copies[words] == parameters[words]


def test_dynamic_int8(exported: Exported, tmp_path: Path) -> None:
    scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
    model = QuantizeLitert(scheme)(exported.checkpoint, exported.model, (), tmp_path)
    assert model.file.stat().st_size < exported.model.file.stat().st_size
    stored = TfliteFile(model.file).stored
    assert len({tensor.sha256 for tensor in stored}) == len(stored)
    assert any(tensor.dtype == "int8" for tensor in stored)
    interpreter = Interpreter(str(model.file))
    for length in LENGTHS:
        inputs = make_inputs(exported.checkpoint, length, length // 2)
        reference = expected(exported, inputs)
        assert np.abs(run(interpreter, inputs) - reference).max() < 0.25 * np.abs(reference).max()


def test_int4(exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks and a smallest size that tiny models have."""
    for module in (tflite_blocks, quantize_litert):
        monkeypatch.setattr(module, "LARGE", 500)
    scheme = replace(find_scheme("dynamic_wi4b64_afp32", "tflite"), block_size=32)
    stage = QuantizeLitert(scheme, rolled=False)
    model = stage(exported.checkpoint, exported.model, (), tmp_path)
    assert model.info.operators["FULLY_CONNECTED"] == 14
    stored = TfliteFile(model.file).stored
    assert len({tensor.sha256 for tensor in stored}) == len(stored)
    words = tuple(exported.torch_model.get_input_embeddings().weight.shape)
    narrow = "int4" if words[1] % 32 == 0 else "int8"  # blocks divide its rows, or not
    assert narrow in {tensor.dtype for tensor in stored if tensor.shape == words}
    widened_tflite(exported.model.file, model.file, tmp_path / "wide.tflite")
    narrow_runtime, wide_runtime = (
        Interpreter(str(file)) for file in (model.file, tmp_path / "wide.tflite")
    )
    for length in LENGTHS:
        inputs = make_inputs(exported.checkpoint, length, length // 2)
        wide = run(wide_runtime, inputs)
        error = np.abs(run(narrow_runtime, inputs) - wide).max()
        assert error < 0.2 * np.abs(wide).max(), length  # int8 activations are the difference
