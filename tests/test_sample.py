"""Drawing calibration texts and subsets of rows."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebert.calibration import Dataset, Row, shipped_dataset
from edgebert.calibration.sample import draw_calibration, spread
from edgebert.targets.errors import InputError


def dataset(
    train: list[Row], dev: list[Row] | None = None, test: list[Row] | None = None
) -> Dataset:
    return Dataset("mine", tuple(train), tuple(dev or ()), tuple(test or ()), "")


def rows_of(count: int) -> list[Row]:
    return [Row("word " * (1 + i % 17) + str(i), f"label {i % 5}") for i in range(count)]


def test_a_draw_depends_on_contents_and_seed_alone() -> None:
    rows = rows_of(400)
    drawn = draw_calibration(dataset(rows), 50, seed=1)
    shuffled = random.Random(0).sample(rows, len(rows))
    assert draw_calibration(dataset(shuffled), 50, seed=1) == drawn
    assert set(draw_calibration(dataset(rows), 50, seed=2)) != set(drawn)
    assert len(set(drawn)) == 50


def test_texts_of_dev_and_test_are_never_drawn_whatever_their_case() -> None:
    rows = rows_of(40)
    held_out = [Row(row.text.upper() + "  ", row.label) for row in rows[:30]]
    drawn = draw_calibration(dataset(rows, held_out[:15], held_out[15:]), 100, seed=0)
    assert {row.text for row in drawn} == {row.text for row in rows[30:]}


def test_a_draw_is_spread_over_labels_and_lengths() -> None:
    data = shipped_dataset("clinc150")
    drawn = draw_calibration(data, 302, seed=0)
    assert set(Counter(row.label for row in drawn).values()) <= {1, 2, 3}
    assert len({row.label for row in drawn}) == 151
    lengths = [sum(len(row.text) for row in rows) / len(rows) for rows in (drawn, data.train)]
    assert abs(lengths[0] - lengths[1]) < 2


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InputError, match="no train split"):
        draw_calibration(dataset([], rows_of(20)), 10, seed=0)
    with pytest.raises(InputError, match="3 usable train rows"):
        draw_calibration(dataset(rows_of(3)), 10, seed=0)
    with pytest.raises(InputError, match="0 calibration rows"):
        draw_calibration(dataset(rows_of(30)), 0, seed=0)


def test_rows_that_repeat_are_drawn_once() -> None:
    assert len(draw_calibration(dataset(rows_of(10) * 20), 100, seed=0)) == 10


@given(st.integers(1, 120), st.integers(1, 150), st.integers(0, 5))
def test_spread_gives_that_many_rows_in_proportion(size: int, count: int, seed: int) -> None:
    rows = rows_of(size)
    chosen = spread(rows, count, seed)
    assert chosen == sorted(set(chosen)) and len(chosen) == min(count, size)
    shares = Counter(rows[i].label for i in chosen)
    for label, rows_with_it in Counter(row.label for row in rows).items():
        assert abs(shares[label] - rows_with_it * len(chosen) / size) < 2
