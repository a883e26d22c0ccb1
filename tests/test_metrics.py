"""Metrics, their intervals, and the comparison of two sets of logits."""

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from sklearn import metrics as sklearn_metrics

from edgebert.calibration import Row
from edgebert.pipeline.artifact import Task
from edgebert.pipeline.comparison import Conditions, Logits, compute_drift
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.intervals import half_width
from edgebert.pipeline.metric_drift import measure_metrics
from edgebert.pipeline.metrics import Predictions
from edgebert.targets.errors import InputError

CONDITIONS = Conditions("test", "a runtime 1.0", "a machine", "none")


def logits_of(values: Any) -> Logits:
    index = np.arange(len(values))
    return Logits(np.asarray(values, dtype=np.float32), index, np.zeros_like(index))


def drift_of(
    task: Task, labels: list[str], rows: list[Row], reference: Any, artifact: Any
) -> DriftReport:
    return compute_drift(task, labels, rows, logits_of(reference), logits_of(artifact), CONDITIONS)


def class_case(
    rows: int, labels: int, seed: int = 0
) -> tuple[list[str], list[Row], np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    names = [f"name {i}" for i in range(labels)]
    truth = random.integers(0, labels, rows)
    reference = random.normal(size=(rows, labels)) + 3.0 * np.eye(labels)[truth]
    artifact = reference + 0.3 * random.normal(size=reference.shape)
    return names, [Row(f"text {i}", names[y]) for i, y in enumerate(truth)], reference, artifact


def test_class_metrics_are_those_of_scikit_learn() -> None:
    names, rows, reference, artifact = class_case(400, 7)
    report = drift_of("single_label", names, rows, reference, artifact)
    truth = [names.index(str(row.label)) for row in rows]
    for values, side in ((reference, "reference"), (artifact, "artifact")):
        said = values.argmax(axis=1)
        expected = [
            sklearn_metrics.accuracy_score(truth, said),
            sklearn_metrics.f1_score(truth, said, average="macro"),
            sklearn_metrics.matthews_corrcoef(truth, said),
        ]
        assert [getattr(m, side) for m in report.metrics] == pytest.approx(expected)
        recalls = sklearn_metrics.recall_score(truth, said, average=None)
        table = {row.label: getattr(row, f"{side}_recall") for row in report.labels}
        assert [table[name] for name in names] == pytest.approx(recalls)
    assert [m.name for m in report.metrics] == ["accuracy", "macro_f1", "mcc"]
    assert report.agreement == pytest.approx((reference.argmax(1) == artifact.argmax(1)).mean())


def test_multi_label_metrics_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    names = [f"name {i}" for i in range(9)]
    truth = random.random((300, 9)) < 0.3
    rows = [Row("t", tuple(n for n, on in zip(names, y, strict=True) if on)) for y in truth]
    reference = random.normal(size=truth.shape) + 3 * truth - 1.5
    artifact = reference + 0.5 * random.normal(size=truth.shape)
    report = drift_of("multi_label", names, rows, reference, artifact)
    for values, side in ((reference, "reference"), (artifact, "artifact")):
        expected = [
            sklearn_metrics.f1_score(truth, values > 0, average="micro"),
            sklearn_metrics.f1_score(truth, values > 0, average="macro"),
            sklearn_metrics.accuracy_score(truth, values > 0),
        ]
        assert [getattr(m, side) for m in report.metrics] == pytest.approx(expected)
    assert report.agreement == pytest.approx(((reference > 0) == (artifact > 0)).all(axis=1).mean())


def test_regression_metrics_are_those_of_scipy() -> None:
    random = np.random.default_rng(0)
    truth = np.round(random.normal(size=200) * 3 + 50)  # with ties
    reference = truth + random.normal(size=200)
    artifact = reference + random.normal(size=200)
    rows = [Row("t", float(y)) for y in truth]
    report = drift_of("regression", ["score"], rows, reference[:, None], artifact[:, None])
    spearman, pearson, mae = report.metrics
    assert spearman.artifact == pytest.approx(spearmanr(truth, artifact)[0], abs=1e-6)
    assert pearson.artifact == pytest.approx(pearsonr(truth, artifact)[0], abs=1e-6)
    assert mae.artifact == pytest.approx(np.abs(truth - artifact).mean(), abs=1e-5)
    assert mae.drop == pytest.approx(mae.artifact - mae.reference)
    assert report.agreement is None and report.kl_mean is None and report.cosine_min is None


def test_one_output_is_a_regression_of_raw_values() -> None:
    values = [[0.37], [-2.5], [4.1]]
    rows = [Row("a", 0.37), Row("b", -2.5), Row("c", 4.1)]
    report = drift_of("regression", ["score"], rows, values, [[0.47], *values[1:]])
    assert report.max_abs_logit == pytest.approx(0.1, abs=1e-6)
    assert report.metrics[2].reference == pytest.approx(0.0, abs=1e-6)
    (worst,) = report.worst
    assert (worst.expected, worst.reference, worst.artifact) == ("0.37", "0.37", "0.47")


def test_labels_match_by_name_and_not_by_position() -> None:
    data_order = ["entailment", "neutral", "contradiction"]
    model_order = ["contradiction", "entailment", "neutral"]
    random = np.random.default_rng(0)
    said = random.integers(0, 3, 300)
    truth = said.copy()
    truth[:30] = (said[:30] + 1) % 3  # 90 % right
    rows = [Row(f"t{i}", model_order[y].upper()) for i, y in enumerate(truth)]
    logits = np.eye(3)[said]
    by_name = drift_of("single_label", model_order, rows, logits, logits)
    assert by_name.metrics[0].reference == pytest.approx(0.900)
    by_position = [data_order.index(str(row.label).lower()) for row in rows]
    assert (np.array(by_position) == said).mean() < 0.4


def test_tokens_are_compared_word_by_word_and_cut_words_are_said() -> None:
    rows = [
        Row("New York rocks", ("B", "I", "O"), tokens=("New", "York", "rocks")),
        Row("no", ("-100",), tokens=("no",)),
        Row("hi Bob", ("O", "B"), tokens=("hi", "Bob")),
    ]
    names, ids = ["O", "B", "I"], [1, 2, 0, 0, 0, 1]
    row, word = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 0, 0, 1])
    reference = Logits(np.eye(3, dtype=np.float32)[ids], row, word)
    artifact = Logits(np.eye(3, dtype=np.float32)[[1, 0, 0, 0, 0]], row[:5], word[:5])
    report = compute_drift("token", names, rows, reference, artifact, CONDITIONS)
    assert report.metrics[0].reference == 1.0
    assert report.metrics[0].artifact == pytest.approx(3 / 4)  # "York" is wrong, "no" is ignored
    assert report.worst[0].text == "York | New York rocks"
    assert any(note.startswith("1 words were cut off") for note in report.notes)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(2, 5), st.integers(0, 1000))
def test_intervals_hold_the_drop_and_permuted_rows_change_nothing(
    count: int, labels: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    columns = random.integers(0, labels, (3, count))
    order = random.permutation(count)
    index = np.arange(count)

    def measure(values: np.ndarray, task: Task) -> tuple[Any, ...]:
        answered = np.ones(count, dtype=bool)
        expected, reference, artifact = values
        predictions = Predictions(task, expected, reference, artifact, answered, index, labels)
        return measure_metrics(predictions, resamples=100)

    multi = random.random((3, count, labels)) < 0.5
    numbers = random.normal(size=(3, count))
    cases: list[tuple[np.ndarray, np.ndarray, Task]] = [
        (columns, columns[:, order], "single_label"),
        (columns, columns[:, order], "token"),
        (multi, multi[:, order], "multi_label"),
        (numbers, numbers[:, order], "regression"),
    ]
    for values, permuted, task in cases:
        found = measure(values, task)
        assert found == measure(permuted, task)
        assert all(m.drop_low <= m.drop <= m.drop_high for m in found)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(2, 6), st.integers(0, 1000))
def test_identical_logits_have_no_drift(count: int, labels: int, seed: int) -> None:
    names, rows, reference, _ = class_case(count, labels, seed)
    report = drift_of("single_label", names, rows, reference, reference)
    assert report.agreement == 1.0
    assert report.kl_max == 0.0 and report.max_abs_logit == 0.0
    assert report.cosine_min == pytest.approx(1.0)
    for metric in report.metrics:  # the rows that were not measured may change: rule of three
        assert metric.drop == 0 and metric.drop_low < 0 < metric.drop_high < 3.9 / count + 0.5
    assert report.worst == ()


def test_the_interval_of_accuracy_is_as_wide_as_theory_says() -> None:
    # 30 rows lost, 10 won of 1000: the paired difference has variance (40/n - (20/n)^2) / n.
    truth = np.zeros(1000, dtype=np.int64)
    reference, artifact = truth.copy(), truth.copy()
    artifact[:30] = 1
    reference[30:40] = 1
    index = np.arange(1000)
    answered = np.ones(1000, dtype=bool)
    predictions = Predictions("single_label", truth, reference, artifact, answered, index, 2)
    accuracy = measure_metrics(predictions)[0]
    half = 1.96 * np.sqrt((0.04 - 0.02**2) / 1000)
    assert accuracy.drop == pytest.approx(0.02)
    assert accuracy.drop_low == pytest.approx(0.02 - half, abs=0.002)
    assert accuracy.drop_high == pytest.approx(0.02 + half, abs=0.002)


def test_kl_and_cosine_of_known_logits() -> None:
    reference, artifact = np.log([[0.5, 0.5]]), np.log([[0.9, 0.1]])
    rows = [Row("a", "x")]
    report = drift_of("single_label", ["x", "y"], rows, reference, artifact)
    assert report.kl_mean == pytest.approx(
        0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1), abs=1e-6
    )
    cosine = (reference * artifact).sum() / np.linalg.norm(reference) / np.linalg.norm(artifact)
    assert report.cosine_min == pytest.approx(cosine, abs=1e-6)


def test_rows_without_finite_logits_count_as_wrong_and_are_told() -> None:
    names, rows, reference, artifact = class_case(50, 3)
    artifact[7, 1], artifact[9] = np.nan, np.inf
    report = drift_of("single_label", names, rows, reference, artifact)
    assert report.nonfinite_rows == 2
    assert any("2 of 50 rows have NaN or infinite logits" in note for note in report.notes)
    assert all(x is not None and np.isfinite(x) for x in (report.kl_max, report.max_abs_logit))
    assert {w.artifact for w in report.worst[:2]} == {"not finite"}
    assert DriftReport.model_validate_json(report.model_dump_json()) == report
    nothing = drift_of("single_label", names, rows, reference, np.full_like(artifact, np.nan))
    assert nothing.metrics[0].artifact == 0.0 and nothing.max_abs_logit is None
    with pytest.raises(InputError, match="fp32 logits are not finite"):
        drift_of("single_label", names, rows, artifact, reference)


def test_half_widths_and_single_rows_at_three_sizes() -> None:
    assert [round(100 * half_width(0.9, n), 1) for n in (20, 200, 872)] == [13.1, 4.2, 2.0]
    for count, share in ((20, "5.000%"), (200, "0.500%"), (872, "0.115%")):
        names, rows, reference, artifact = class_case(count, 2)
        report = drift_of("single_label", names, rows, reference, artifact)
        assert f"one row is {share} of {count}" in report.notes[-1]


def test_a_report_of_5500_rows_and_151_labels_takes_seconds() -> None:
    names, rows, reference, artifact = class_case(5500, 151)
    start = time.process_time()
    report = drift_of("single_label", names, rows, reference, artifact)
    assert time.process_time() - start < 10  # about 1 s on an idle machine
    assert len(report.worst) == 20 and len(report.labels) == 151
