"""Blocks of 4 and 8 bits, and GPTQ: laws of the numbers, whatever format stores them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import nn

from edgebert.pipeline.artifact import Checkpoint, TokenRow
from edgebert.pipeline.stages.blocks import Blocks, Levels, pack_nibbles
from edgebert.pipeline.stages.gptq import input_moments, quantize_matrix
from edgebert.pipeline.stages.load import load_model

Array = npt.NDArray[np.float32]
MATRICES = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=70),
    elements=st.floats(-1e3, 1e3, width=32),
)


def each_scale(blocks: Blocks, block: int, columns: int) -> Array:
    return np.repeat(blocks.scale, block, axis=1)[:, :columns]


@given(MATRICES, st.sampled_from([16, 32, 128]), st.sampled_from([4, 8]))
def test_symmetric_error_is_at_most_half_a_scale(value: Array, block: int, bits: int) -> None:
    blocks = Levels(bits, block, symmetric=True).quantize(value)
    assert blocks.q.shape == (len(value), -(-value.shape[1] // block), block)
    error = np.abs(blocks.restored(value.shape[1]).astype(np.float64) - value)
    limit = each_scale(blocks, block, value.shape[1])
    assert (error <= limit * 0.5 * (1 + 1e-4) + 1e-30).all()


@given(MATRICES, st.sampled_from([16, 32, 128]))
def test_asymmetric_error_is_at_most_a_scale(value: Array, block: int) -> None:
    """The zero point is rounded as well, and the ends of the range may lose another half."""
    blocks = Levels(4, block, symmetric=False).quantize(value)
    error = np.abs(blocks.restored(value.shape[1]).astype(np.float64) - value)
    limit = each_scale(blocks, block, value.shape[1])
    assert (error <= limit * (1 + 1e-4) + 1e-30).all()


@given(MATRICES)
def test_half_scales_are_exact_in_fp16_and_bfloat16(value: Array) -> None:
    scale = Levels(4, 32, symmetric=True, half_scales=True).quantize(value).scale
    assert (scale.astype(np.float16).astype(np.float32) == scale).all()
    normal = scale > np.finfo(np.float16).tiny
    assert (scale.view(np.uint32)[normal] & 0xFFFF == 0).all()
    assert (scale > 0).all()


@given(hnp.arrays(np.uint8, hnp.array_shapes(max_dims=2, max_side=9), elements=st.integers(0, 15)))
def test_nibbles_hold_two_numbers_a_byte(value: npt.NDArray[np.uint8]) -> None:
    packed = pack_nibbles(value)
    assert packed.shape[-1] == -(-value.shape[-1] // 2)
    unpacked = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*value.shape[:-1], -1)
    np.testing.assert_array_equal(unpacked[..., : value.shape[-1]], value)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("columns", [96, 80])
def test_feedback_halves_what_a_product_loses(symmetric: bool, columns: int) -> None:
    generator = np.random.default_rng(0)
    mixing = generator.standard_normal((8, columns))  # inputs of 8 dimensions, and noise
    x = generator.standard_normal((400, 8)) @ mixing + 0.3 * generator.standard_normal(
        (400, columns)
    )
    matrix = generator.standard_normal((50, columns)).astype(np.float32)
    levels = Levels(4, 32, symmetric)
    moments = (x.T @ x).astype(np.float32)
    nearest, corrected = (
        np.linalg.norm(x @ (quantize_matrix(matrix, levels, seen).restored(columns) - matrix).T)
        for seen in (None, moments)
    )
    assert corrected < 0.5 * nearest


def test_inputs_without_any_variation_change_nothing() -> None:
    matrix = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)
    levels = Levels(4, 32, symmetric=True)
    still = quantize_matrix(matrix, levels, np.zeros((40, 40), np.float32))
    np.testing.assert_array_equal(still.q, levels.quantize(matrix).q)


@pytest.mark.parametrize("family", ["bert", "albert", "distilbert"])
def test_moments_of_every_large_layer(
    family: str, tiny_checkpoint: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    hidden: dict[str, Any] = {"hidden_size": 128} if family != "distilbert" else {"dim": 128}
    checkpoint = tiny_checkpoint(family, tmp_path / "checkpoint", **hidden)
    rows = [TokenRow(tuple(range(10, 10 + n)), (0,) * n) for n in (4, 9)]
    moments = input_moments(checkpoint, rows)
    layers = {
        name: layer
        for name, layer in load_model(checkpoint).named_modules()
        if isinstance(layer, nn.Linear) and layer.weight.numel() > 10_000
    }
    assert layers and set(moments) == set(layers)
    for name, layer in layers.items():
        assert moments[name].shape == (layer.in_features, layer.in_features)
        assert np.linalg.eigvalsh(moments[name].astype(np.float64)).min() > -1e-2
    attention = [name for name in layers if name.endswith(("query", "q_lin", "key", "k_lin"))]
    assert moments[attention[0]] is moments[attention[1]]
