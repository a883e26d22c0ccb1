"""Shared layers are one WHILE in each signature, which computes what the written-out graph does."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.runtimes.run import open_session
from edgebert.pipeline.runtimes.tflite_file import TfliteFile, operator_name
from edgebert.pipeline.runtimes.tflite_loop import roll
from edgebert.pipeline.runtimes.tflite_rewrite import tidy, write_tflite
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert

LENGTHS = (8, 16)


def operators(file: TfliteFile, graph: int) -> list[str]:
    codes = file.model.operatorCodes
    return [operator_name(codes[op.opcodeIndex]) for op in file.model.subgraphs[graph].operators]


def logits(file: Path) -> np.ndarray:
    session = open_session(file)
    rows = [list(range(first, first + count)) for first, count in ((6, 5), (20, 8), (40, 16))]
    return np.stack([session.logits(row, [0] * len(row)) for row in rows])


@pytest.fixture(scope="module", params=["shared", "groups"])
def exported(
    request: pytest.FixtureRequest,
    tiny_checkpoint: Callable[..., Checkpoint],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Checkpoint, Model, int]:
    folder = tmp_path_factory.mktemp("albert")
    groups = 2 if request.param == "groups" else 1
    settings = {"num_hidden_groups": groups, "num_hidden_layers": 4, "vocab_size": 1000}
    checkpoint = tiny_checkpoint("albert", folder / "checkpoint", **settings)
    return checkpoint, ExportLitert(LENGTHS)(checkpoint, folder / "fp32"), groups


def test_a_loop_computes_what_the_passes_did(
    exported: tuple[Checkpoint, Model, int], tmp_path: Path
) -> None:
    _, model, groups = exported
    file = TfliteFile(model.file)
    before = len(operators(file, 0))
    assert roll(file.model) == groups * len(LENGTHS)
    tidy(file.model)
    write_tflite(file.model, tmp_path / "model.tflite")
    rolled = TfliteFile(tmp_path / "model.tflite")
    assert operators(rolled, 0).count("WHILE") == groups
    assert len(operators(rolled, 0)) < before / 2
    np.testing.assert_allclose(logits(rolled.file), logits(model.file), rtol=0, atol=1e-6)


def test_a_dynamic_scheme_is_rolled(
    exported: tuple[Checkpoint, Model, int], tmp_path: Path
) -> None:
    checkpoint, model, groups = exported
    scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
    quantized = QuantizeLitert(scheme)(checkpoint, model, (), tmp_path)
    file = TfliteFile(quantized.file)
    assert operators(file, 0).count("WHILE") == groups
    assert quantized.info.operators["WHILE"] == 1 and quantized.info.minimum_runtime
    assert quantized.info.lengths == LENGTHS
    assert np.abs(logits(quantized.file) - logits(model.file)).max() < 0.1
