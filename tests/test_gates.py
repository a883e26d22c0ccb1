"""Gates: that they hold, that they fire, and what they say."""

import numpy as np
import pytest

from edgebert.calibration import Row
from edgebert.pipeline.comparison import Conditions, Logits, compute_drift
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.gates import Limits, judge
from edgebert.targets.errors import InputError


def drift(rows: int, noise: float = 0.0, nan_rows: int = 0) -> DriftReport:
    """The drift of logits damaged by seeded noise."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 4, rows)
    index = np.arange(rows)
    reference = (np.eye(4)[truth] * 4 + random.normal(size=(rows, 4))).astype(np.float32)
    artifact = reference + noise * random.normal(size=reference.shape).astype(np.float32)
    artifact[:nan_rows, 0] = np.nan
    return compute_drift(
        "single_label",
        list("abcd"),
        [Row(f"text {i}", "abcd"[y]) for i, y in enumerate(truth)],
        Logits(reference, index, index * 0),
        Logits(artifact, index, index * 0),
        Conditions("test", "runtime", "machine", "none"),
    )


def test_the_drift_gate_passes_equal_logits_and_fails_damaged_ones() -> None:
    (gate,) = judge(Limits(), "onnx", drift(2000))
    assert gate.passed and gate.value == 0 and gate.name == "drift (onnx)"
    (gate,) = judge(Limits(), "onnx", drift(2000, noise=3.0))
    assert not gate.passed and gate.value > gate.limit
    assert "95 % interval" in gate.message and "FAILED" in gate.message


def test_a_single_nan_fails_the_drift_gate_even_within_the_limit() -> None:
    damaged = drift(2000, nan_rows=1)
    (gate,) = judge(Limits(max_drop=0.5), "tflite", damaged)
    assert gate.value < gate.limit and not gate.passed
    assert "1 rows have NaN or infinite logits" in gate.message


def test_size_and_latency_gates_fire_only_above_their_limits() -> None:
    limits = Limits(max_size_mb=12, max_latency_ms=20)
    gates = judge(limits, "onnx", size_mb=12.0, latency_ms=20.1)
    assert [(g.name, g.unit, g.passed) for g in gates] == [
        ("size (onnx)", "MB", True),
        ("latency (onnx)", "ms", False),
    ]
    assert "20.1 ms, limit 20 ms" in gates[1].message
    assert not judge(limits, "onnx", latency_ms=float("nan"))[0].passed
    assert judge(Limits(), "onnx", size_mb=1e9) == ()


def test_the_gate_says_which_of_three_it_is() -> None:
    (gate,) = judge(Limits(), "onnx", drift(2000))
    assert gate.verdict == "below" and gate.rows_needed is None
    assert "the drop is below the limit with 95 % confidence: passed" in gate.message
    (gate,) = judge(Limits(), "onnx", drift(2000, noise=3.0))
    assert gate.verdict == "above" and not gate.passed
    assert "the drop is above the limit with 95 % confidence: FAILED" in gate.message
    (gate,) = judge(Limits(), "onnx", drift(20))
    assert gate.verdict == "cannot tell" and gate.passed  # the drop that was measured is 0
    assert "cannot tell with n = 20" in gate.message
    assert "finer than 20 rows can show; one row is 0.05" in gate.message
    assert gate.rows_needed == 300 and "about 300 rows would tell" in gate.message
    assert judge(Limits(), "onnx", drift(300))[0].verdict == "below"


def test_confidence_can_be_demanded() -> None:
    (gate,) = judge(Limits(confident=True), "onnx", drift(20))
    assert not gate.passed and "the recipe demands 95 % confidence" in gate.message
    (gate,) = judge(Limits(confident=True), "onnx", drift(2000))
    assert gate.passed


def test_a_limit_that_may_be_meant_in_percent_is_said() -> None:
    (gate,) = judge(Limits(max_drop=0.5), "onnx", drift(2000))
    assert "a limit of 50 points: for 0.5 points write 0.005" in gate.message


def test_random_weights_are_said() -> None:
    (gate,) = judge(Limits(), "onnx", drift(500), random_weights=True)
    assert "accuracy means nothing" in gate.message


@pytest.mark.parametrize("drop", [1.0, 2, 100, -0.1, float("nan")])
def test_a_drop_that_is_no_fraction_is_refused(drop: float) -> None:
    with pytest.raises(InputError, match="max_drop"):
        Limits(max_drop=drop)


def test_a_drop_in_percent_is_refused_with_the_fraction_to_write() -> None:
    with pytest.raises(InputError, match=r"for 2 points write 0\.02"):
        Limits(max_drop=2)
    with pytest.raises(InputError, match="max_size_mb"):
        Limits(max_size_mb=0)
