"""Intervals and tests against known values, and their error rates by simulation."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.optimize import minimize_scalar
from scipy.stats import bootstrap, norm
from sklearn import metrics as sklearn_metrics

from edgebert.calibration import Row
from edgebert.pipeline import intervals
from edgebert.pipeline.artifact import Task
from edgebert.pipeline.comparison import Conditions, Logits, compute_drift
from edgebert.pipeline.confidence import BINS
from edgebert.pipeline.decision import decide, rows_that_tell
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.findings import MetricDrift
from edgebert.pipeline.metric_drift import measure_metrics, share_drift
from edgebert.pipeline.metrics import Predictions
from edgebert.pipeline.significance import adjusted, loss_p_value, mcnemar
from edgebert.pipeline.slices import script_of


def predictions_of(task: Task, expected: Any, reference: Any, artifact: Any, labels: int) -> Any:
    rows = np.arange(len(expected))
    answered = np.ones(len(expected), dtype=bool)
    return Predictions(task, expected, reference, artifact, answered, rows, labels)


def paired_rows(lost: int, won: int, rows: int) -> MetricDrift:
    """The drift of an accuracy with so many rows lost and won."""
    reference, artifact = np.ones(rows, bool), np.ones(rows, bool)
    artifact[:lost] = False
    reference[lost : lost + won] = False
    return share_drift("accuracy", reference, artifact)


def test_intervals_of_a_share_and_of_correlations_are_the_published_ones() -> None:
    # Newcombe, Statistics in Medicine 17, 1998, table I: Wilson without continuity correction.
    assert intervals.share(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert intervals.share(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    # Zou, Psychological Methods 12, 2007: r12 = .396, r13 = .179, r23 = .088, n = 66.
    found = intervals.correlation_difference(0.396, 0.179, 0.088, 66, ranks=False)
    assert found == pytest.approx((-0.093, 0.517), abs=1e-3)
    assert intervals.correlation(0.5, 103, ranks=False) == pytest.approx((0.339, 0.632), abs=1e-3)


@pytest.mark.parametrize(("lost", "won", "rows"), [(12, 2, 100), (3, 0, 50), (0, 4, 300)])
def test_the_score_interval_ends_where_its_test_does(lost: int, won: int, rows: int) -> None:
    """At either end the score statistic, with its likelihood maximized numerically, is 1.96."""

    def statistic(difference: float) -> float:
        def loss(share_won: float) -> float:
            share_lost, rest = share_won + difference, 1 - 2 * share_won - difference
            terms = ((lost, share_lost), (won, share_won), (rows - lost - won, rest))
            return -sum(count * math.log(max(share, 1e-300)) for count, share in terms)

        bounds = (max(0.0, -difference), (1 - difference) / 2)
        best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
        variance = rows * (2 * best + difference - difference**2)
        return float((lost - won - rows * difference) / math.sqrt(variance))

    low, high = intervals.paired_difference(lost, won, rows)
    assert low < (lost - won) / rows < high
    assert statistic(low) == pytest.approx(1.96, abs=0.01)
    assert statistic(high) == pytest.approx(-1.96, abs=0.01)


def test_an_interval_without_any_change_is_not_empty() -> None:
    z = norm.isf(0.025)
    for rows in (1, 20, 5500):
        end = z**2 / (rows + z**2)
        assert intervals.paired_difference(0, 0, rows) == pytest.approx((-end, end), abs=1e-6)
        assert (1 - intervals.unseen(rows)) ** rows == pytest.approx(0.025)
    low, high = intervals.paired_difference(30, 10, 1000)  # large numbers: the normal interval
    assert (low + high) / 2 == pytest.approx(0.02, abs=0.001)
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt((0.04 - 0.02**2) / 1000), abs=0.001)
    assert intervals.paired_difference(7, 7, 7 + 7) == pytest.approx(
        tuple(-x for x in reversed(intervals.paired_difference(7, 7, 14)))
    )


def test_tests_of_paired_answers() -> None:
    assert mcnemar(1, 9) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(9, 1) == mcnemar(1, 9)
    assert mcnemar(0, 0) == mcnemar(5, 5) == 1.0
    assert loss_p_value(5, 0) == pytest.approx(1 / 32)
    assert loss_p_value(0, 5) == loss_p_value(0, 0) == 1.0
    # Benjamini and Hochberg by hand: p * m / rank, made monotone from the largest down.
    assert adjusted([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 4 / 75, 4 / 75, 0.5])
    assert adjusted([]) == []


def test_error_rates_of_the_decision() -> None:
    """A drop of exactly the limit is called below it about once in twenty, at most."""
    random = np.random.default_rng(0)
    limit, trials = 0.02, 1500
    for rows, won in ((300, 0.0), (300, 0.02), (2000, 0.005)):
        shares = (limit + won, won, 1 - limit - 2 * won)
        verdicts = [
            decide(paired_rows(int(b), int(c), rows), rows, limit).verdict
            for b, c, _ in random.multinomial(rows, shares, trials)
        ]
        error = 3 * math.sqrt(0.05 * 0.95 / trials)  # of the simulation
        assert verdicts.count("below") / trials < 0.06 + error
        # The other error, a false alarm, is up to 8 % where few rows are lost and none is won.
        assert verdicts.count("above") / trials < 0.08 + error


def test_the_advised_number_of_rows_tells_four_times_of_five() -> None:
    random = np.random.default_rng(1)
    few = paired_rows(4, 2, 200)  # a drop of 1 point, and 2 are allowed
    needed = rows_that_tell(few, 200, 0.02)
    assert needed is not None and 1000 < needed < 5000
    told = [
        decide(paired_rows(int(b), int(c), needed), needed, 0.02).verdict == "below"
        for b, c, _ in random.multinomial(needed, (0.02, 0.01, 0.97), 500)
    ]
    assert np.mean(told) == pytest.approx(0.8, abs=0.12)
    assert rows_that_tell(paired_rows(0, 0, 20), 20, 0.01) == 300  # log(0.05) / log(0.99) = 298.1
    assert rows_that_tell(paired_rows(4, 0, 200), 200, 0.02) is None  # the drop is the limit
    assert rows_that_tell(paired_rows(0, 0, 20), 20, 0.0) is None


def test_an_order_that_did_not_change_is_no_proof_on_few_rows() -> None:
    values = np.linspace(0, 1, 30)
    (spearman, *_) = measure_metrics(predictions_of("regression", values, values, values**2, 1))
    assert spearman.drop == 0 and decide(spearman, 30, 0.01).verdict == "cannot tell"
    assert decide(spearman, 30, 0.01).rows_needed == 300


def test_coverage_of_the_interval_of_accuracy_macro_f1_and_spearman() -> None:
    random = np.random.default_rng(2)
    trials, rows, labels = 150, 150, 4
    held = {"accuracy": 0, "macro_f1": 0, "spearman": 0}

    def class_side(truth: np.ndarray, wrong: float) -> np.ndarray:
        other = random.integers(0, labels, len(truth))
        return np.where(random.random(len(truth)) < wrong, other, truth)

    def truths(size: int) -> dict[str, float]:
        truth = random.integers(0, labels, size)
        reference = class_side(truth, 0.2)
        sides = truth, reference, class_side(reference, 0.08)
        found = measure_metrics(predictions_of("single_label", *sides, labels), resamples=2)
        numbers = random.normal(size=size)
        scores = numbers, (noisy := numbers + random.normal(size=size) * 0.7), noisy
        scores = (*scores[:2], noisy + random.normal(size=size) * 0.3)
        score = measure_metrics(predictions_of("regression", *scores, 1), resamples=2)
        return {m.name: m.drop for m in (*found, *score)}

    true = truths(400_000)
    for _ in range(trials):
        truth = random.integers(0, labels, rows)
        reference = class_side(truth, 0.2)
        sides = truth, reference, class_side(reference, 0.08)
        numbers = random.normal(size=rows)
        noisy = numbers + random.normal(size=rows) * 0.7
        scores = numbers, noisy, noisy + random.normal(size=rows) * 0.3
        for metric in (
            *measure_metrics(predictions_of("single_label", *sides, labels), resamples=300),
            *measure_metrics(predictions_of("regression", *scores, 1), resamples=300),
        ):
            if metric.name in held:
                held[metric.name] += metric.drop_low <= true[metric.name] <= metric.drop_high
    for name, count in held.items():
        assert count / trials >= 0.89, (name, count / trials)


def test_the_bootstrap_is_that_of_scipy() -> None:
    random = np.random.default_rng(3)
    truth = random.integers(0, 3, 300)
    reference = np.where(random.random(300) < 0.2, random.integers(0, 3, 300), truth)
    artifact = np.where(random.random(300) < 0.1, random.integers(0, 3, 300), reference)

    def drop(y: np.ndarray, r: np.ndarray, a: np.ndarray) -> float:
        scores = (sklearn_metrics.matthews_corrcoef(y, side) for side in (r, a))
        return float(next(scores)) - float(next(scores))

    found = bootstrap(
        (truth, reference, artifact),
        drop,
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=600,
        rng=random,
    ).confidence_interval
    ours = measure_metrics(predictions_of("single_label", truth, reference, artifact, 3))[2]
    assert ours.name == "mcc"
    assert (ours.drop_low, ours.drop_high) == pytest.approx((found.low, found.high), abs=0.012)


@pytest.fixture(scope="module")
def report() -> DriftReport:
    """2,000 rows of 12 labels; the artifact loses most of `c` to `d`, and is too sure of itself."""
    random = np.random.default_rng(4)
    names = [*"abcdefghijk", "oos"]
    truth = random.integers(0, 12, 2000)
    reference = 4 * (random.normal(size=(2000, 12)) + 4 * np.eye(12)[truth])  # calibrated
    artifact = reference * 3
    moved = (truth == 2) & (random.random(2000) < 0.6)
    artifact[moved, 3] += 300
    rows = [
        Row(("дом " if i % 4 == 0 else "house ") * (1 + i % 30), names[y])
        for i, y in enumerate(truth)
    ]
    index = np.arange(2000)
    tokens = {i: 1 + i % 30 for i in range(2000)}
    return compute_drift(
        "single_label",
        names,
        rows,
        Logits(reference.astype(np.float32), index, index * 0),
        Logits(artifact.astype(np.float32), index, index * 0),
        Conditions("test", "runtime", "machine", "none", tokens=tokens),
    )


def test_the_label_that_regressed_is_found_and_no_other(report: DriftReport) -> None:
    regressed = [label for label in report.labels if label.regressed]
    assert [label.label for label in regressed] == ["c"]
    (label,) = regressed
    assert label.lost > 60 and label.won == 0 and label.p_adjusted < 1e-10
    assert label.artifact_recall_low < label.artifact_recall < label.artifact_recall_high < 0.6
    first = report.confusions[0]
    assert (first.expected, first.said) == ("c", "d")
    assert first.artifact - first.reference >= label.lost - 2
    assert report.mcnemar is not None and report.mcnemar.p_value < 1e-10


def test_losses_are_said_in_words(report: DriftReport) -> None:
    assert "1 labels regressed: c" in report.losses
    assert any(line.startswith("script Cyrillic regressed: accuracy") for line in report.losses)
    assert any(line.startswith("confidence is less to be trusted") for line in report.losses)
    assert not any("out of scope" in line for line in report.losses)


def test_false_alarms_of_many_labels_are_rare() -> None:
    """Labels that lose as much as they win: at least one is called regressed once in twenty."""
    random = np.random.default_rng(5)
    alarms = 0
    for _ in range(300):
        changed = random.binomial(12, 0.5, 60)
        p_values = adjusted([loss_p_value(int(lost), 12 - int(lost)) for lost in changed])
        alarms += min(p_values) < 0.05
    assert alarms / 300 < 0.08


def test_calibration_of_confidence(report: DriftReport) -> None:
    found = report.confidence
    assert found is not None and len(found.reference) == BINS
    for side, value in (
        (found.reference, found.ece.reference),
        (found.artifact, found.ece.artifact),
    ):
        assert sum(one.items for one in side) == 2000
        gaps = [
            one.items * abs(one.confidence - one.right)
            for one in side
            if one.right is not None and one.confidence is not None
        ]
        assert sum(gaps) / 2000 == pytest.approx(value)
    assert found.ece.drop == pytest.approx(found.ece.artifact - found.ece.reference)
    assert 0 < found.ece.drop_low < found.ece.drop < found.ece.drop_high


def test_a_calibrated_model_has_a_small_calibration_error_and_a_sure_one_the_expected() -> None:
    random = np.random.default_rng(6)
    share = random.uniform(0.5, 1, 20000)
    right = random.random(20000) < share
    logits = np.stack([np.log(share / (1 - share)), np.zeros(20000)], axis=1)
    rows = [Row("text", "yes" if one else "no") for one in right]
    index = np.arange(20000)
    sides = [
        Logits(values.astype(np.float32), index, index * 0)
        for values in (logits, logits + np.array([[50, 0]]))
    ]
    conditions = Conditions("test", "runtime", "machine", "none")
    found = compute_drift(
        "single_label", ["yes", "no"], rows, sides[0], sides[1], conditions
    ).confidence
    assert found is not None
    assert found.ece.reference < 0.015  # calibrated by construction
    assert found.ece.artifact == pytest.approx(1 - right.mean(), abs=1e-6)  # always sure


def test_texts_out_of_scope(report: DriftReport) -> None:
    found = report.out_of_scope
    assert found is not None and found.label == "oos"
    assert found.rows == next(label.rows for label in report.labels if label.label == "oos")
    recall = next(label for label in report.labels if label.label == "oos").reference_recall
    assert found.found.reference == pytest.approx(recall)
    assert found.wrongly_refused.reference < 0.1


def test_slices_by_length_and_script(report: DriftReport) -> None:
    table = {(one.kind, one.name): one for one in report.slices}
    assert [name for kind, name in table if kind == "length"] == ["1-8", "9-16", "17-32"]
    assert table["script", "Cyrillic"].rows == 500 and table["script", "Latin"].rows == 1500
    assert sum(one.rows for one in report.slices if one.kind == "length") == 2000
    lost = [one.mcnemar.lost for one in report.slices if one.kind == "script" and one.mcnemar]
    assert report.mcnemar is not None and sum(lost) == report.mcnemar.lost
    assert all(one.regressed for one in report.slices)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("naïve 123", "Latin"),
        ("дом", "Cyrillic"),
        ("東京は", "Han"),
        ("한국어", "Hangul"),
        ("!", ""),
    ],
)
def test_scripts(text: str, script: str) -> None:
    assert script_of(text) == script


def test_a_percent_is_no_metric() -> None:
    fraction = paired_rows(1, 0, 100).model_dump()
    with pytest.raises(ValidationError, match="give a fraction, not a percent"):
        MetricDrift.model_validate(fraction | {"reference": 97.3})
    assert MetricDrift.model_validate(fraction | {"name": "mae", "reference": 97.3})


def test_texts_can_be_left_out(report: DriftReport) -> None:
    assert "house" in report.model_dump_json()
    bare = report.without_texts().model_dump_json()
    assert "house" not in bare and "дом" not in bare
