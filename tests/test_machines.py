"""How far machines differ: labels, cosine of every text, and what the gates make of it."""

import numpy as np
import pytest

from edgebert.pipeline.artifact import Task
from edgebert.pipeline.machines import MachineDrift, compare_machines, judge_machines
from edgebert.pipeline.summary import changed_labels

LABELS = ("a", "b", "c")


def compare(
    here: np.ndarray, there: np.ndarray, task: Task = "single_label", tolerance: float = 0.1
) -> MachineDrift:
    return compare_machines(
        task,
        LABELS,
        [f"text {i}" for i in range(len(here))],
        list(here.astype(np.float32)),
        list(there.astype(np.float32)),
        format="onnx",
        runner="qemu:cortex-a76",
        machine="there",
        runtime="onnxruntime 1",
        here_machine="here",
        here_runtime="onnxruntime 1",
        emulated=True,
        available=500,
        tolerance=tolerance,
    )


def random_logits(rows: int) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 3, (rows, 3))


def test_the_same_logits_are_the_same() -> None:
    logits = random_logits(40)
    found = compare(logits, logits)
    assert found.agreement == 1
    assert found.cosine_min == pytest.approx(1)
    assert found.max_abs_logit == 0
    assert found.worst == ()
    assert all(gate.passed for gate in judge_machines(found))
    assert MachineDrift.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(("rows", "passed"), [(200, True), (199, False)])
def test_one_label_of_so_many_rows(rows: int, passed: bool) -> None:
    here = np.tile([3.0, 0.0, -3.0], (rows, 1))
    here[7] = [3.0, 2.999, -3.0]
    there = here.copy()
    there[7, :2] = here[7, 1::-1]  # nothing else but the order of two almost equal logits
    found = compare(here, there)
    assert found.agreement == pytest.approx(1 - 1 / rows)
    labels, cosine = judge_machines(found)
    assert labels.passed is passed
    assert cosine.passed
    assert (found.worst[0].text, found.worst[0].here, found.worst[0].there) == ("text 7", "a", "b")
    assert changed_labels(found) == ["'text 7': a here, b there"]
    assert "qemu:cortex-a76" in labels.name
    assert f"({rows} of 500 test rows)" in labels.message


def test_one_text_that_turns_fails_the_cosine() -> None:
    here = random_logits(300)
    here[5] = [9.0, 4.0, 0.0]
    there = here.copy()
    there[5] = [9.0, 5.2, 0.0]  # same label, cosine 0.992
    labels, cosine = judge_machines(compare(here, there))
    assert labels.passed
    assert not cosine.passed
    assert 0.99 < cosine.value < 0.995


def test_no_number_is_no_agreement() -> None:
    here = random_logits(300)
    there = here.copy()
    there[3] = np.nan
    found = compare(here, there)
    assert found.max_abs_logit is None
    assert not judge_machines(found)[1].passed
    assert MachineDrift.model_validate_json(found.model_dump_json()) == found


def test_where_it_starts_and_what_to_do_are_in_the_message() -> None:
    here = random_logits(50)
    found = compare(here, -here).model_copy(
        update={"starts_at": "MatMul of x", "offer": "dynamic_wi7c_afp32"}
    )
    for gate in judge_machines(found):
        assert not gate.passed
        assert "it starts at MatMul of x" in gate.message
        assert "--set quantize.scheme=dynamic_wi7c_afp32" in gate.message


def test_regression_is_held_to_the_golden_tolerance() -> None:
    here = np.linspace(0, 5, 20)[:, None]
    for off, passed in ((0.09, True), (0.11, False)):
        found = compare(here, here + off, "regression")
        assert (found.agreement, found.cosine_min) == (None, None)
        (gate,) = judge_machines(found)
        assert gate.passed is passed
        assert gate.limit == 0.1


def test_tokens_and_several_labels() -> None:
    rows = np.random.default_rng(1).normal(0, 2, (4, 6, 3))  # [row, seq, labels]
    assert compare(rows, rows + 1e-4, "token").agreement == 1
    here = np.array([[1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]])
    found = compare(here, np.array([[1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]), "multi_label")
    assert found.agreement == 0.5
    assert (found.worst[0].here, found.worst[0].there) == ("a, b", "a")
