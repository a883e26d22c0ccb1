"""Signatures of several lengths become one graph, which gives what they gave in less memory."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.runtimes.run import open_session
from edgebert.pipeline.runtimes.tflite_file import TfliteFile, operator_name, shape_of, text_of
from edgebert.pipeline.runtimes.tflite_heads import keep_batch
from edgebert.pipeline.runtimes.tflite_lengths import merge_lengths
from edgebert.pipeline.runtimes.tflite_rewrite import tidy, write_tflite
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.measure import measure
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert

LENGTHS = (8, 16, 40)  # 16 is also the size of a head


@pytest.fixture(scope="module", params=["bert", "mobilebert"])
def exported(
    request: pytest.FixtureRequest,
    tiny_checkpoint: Callable[..., Checkpoint],
    tmp_path_factory: pytest.TempPathFactory,
) -> Model:
    folder = tmp_path_factory.mktemp(request.param)
    checkpoint = tiny_checkpoint(request.param, folder / "checkpoint")
    return ExportLitert(LENGTHS)(checkpoint, folder / "fp32")


def logits(file: Path) -> np.ndarray:
    """Of rows of all lengths, so that the next one is longer or shorter than the last."""
    session, generator = open_session(file), np.random.default_rng(0)
    counts = [5, 40, 8, 16, 23, 1, 12]
    rows = [generator.integers(10, 150, count).tolist() for count in counts]
    return np.stack([session.logits(row, [0] * len(row)) for row in rows])


def operators(model: Any, name: str) -> list[Any]:
    codes = [operator_name(code) for code in model.operatorCodes]
    graphs = [graph.operators for graph in model.subgraphs]
    return [op for graph in graphs for op in graph if codes[op.opcodeIndex] == name]


def forget(file: Path) -> None:
    """Drop a file from the cache, as after a restart: right after it was written, its pages lie in
    large blocks, and to read a part of one would map all of it.
    """
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_one_graph_gives_what_three_did(exported: Model, tmp_path: Path) -> None:
    model = TfliteFile(exported.file).model
    keep_batch(model)
    assert merge_lengths(model)
    tidy(model)
    write_tflite(model, tmp_path / "model.tflite")
    merged = TfliteFile(tmp_path / "model.tflite")
    (graph,) = merged.model.subgraphs
    assert all(list(graph.tensors[i].shapeSignature) == [1, -1] for i in graph.inputs)
    names = [text_of(signature.signatureKey) for signature in merged.model.signatureDefs]
    assert sorted(names) == ["s16", "s40", "s8"]
    info = merged.info("fp32", 512)
    assert (info.lengths, info.inputs) == (LENGTHS, exported.info.inputs)
    np.testing.assert_allclose(logits(merged.file), logits(exported.file), rtol=0, atol=1e-6)


def test_graphs_that_differ_stay(exported: Model) -> None:
    def other_option(model: Any) -> None:
        operators(model, "FULLY_CONNECTED")[0].builtinOptions.fusedActivationFunction = 1

    def other_positions(model: Any) -> None:
        places = np.arange(LENGTHS[0], dtype=np.int32).tobytes()
        buffers = [b for b in model.buffers if b.data is not None and bytes(b.data) == places]
        buffers[0].data = (np.arange(LENGTHS[0], dtype=np.int32) + 1).view(np.uint8)

    def other_scale(model: Any) -> None:
        graph = model.subgraphs[-1]
        graph.tensors[graph.outputs[0]].quantization = model.subgraphs[0].tensors[0].quantization
        graph.tensors[graph.outputs[0]].quantization.scale = np.array([0.1], np.float32)

    for change in (other_option, other_positions, other_scale):
        model = TfliteFile(exported.file).model
        keep_batch(model)
        change(model)
        assert not merge_lengths(model), change.__name__
        assert len(model.subgraphs) == len(LENGTHS)


def test_attention_keeps_its_batch(exported: Model, tmp_path: Path) -> None:
    model = TfliteFile(exported.file).model
    before, products = len(operators(model, "RESHAPE")), operators(model, "BATCH_MATMUL")
    assert keep_batch(model) == len(products)
    for graph in model.subgraphs:
        for product in (op for op in graph.operators if op in products):
            assert [len(shape_of(graph.tensors[i])) for i in product.inputs] == [4, 4]
    assert len(operators(model, "RESHAPE")) <= before - 2 * len(products)
    write_tflite(model, tmp_path / "model.tflite")
    changed, given = logits(tmp_path / "model.tflite"), logits(exported.file)
    np.testing.assert_allclose(changed, given, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_memory_of_albert_base(tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path) -> None:
    """Its depths share a layer, so that two of them make the file of twelve."""
    sizes = {"embedding_size": 128, "hidden_size": 768, "intermediate_size": 3072}
    counts = {"vocab_size": 30000, "num_hidden_layers": 2, "num_attention_heads": 12}
    settings = {**sizes, **counts, "max_position_embeddings": 512}
    checkpoint = tiny_checkpoint("albert", tmp_path / "checkpoint", **settings)
    memory = []
    for lengths in ((32, 64, 128), (128,)):
        fp32 = ExportLitert(lengths)(checkpoint, tmp_path / f"fp32-{len(lengths)}")
        scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
        out = tmp_path / f"int8-{len(lengths)}"
        model = QuantizeLitert(scheme)(checkpoint, fp32, (), out)
        forget(model.file)
        memory.append(measure(model.file, tokens=128, runs=1, warmups=0).memory_mb or 0.0)
        assert memory[-1] <= 2 * model.size_mb
    assert memory[0] <= memory[1] + 1, "three lengths take more memory than one"
