"""The distillation losses against their formulas, and the rules of layer maps."""

import pytest
import torch

from edgebert.pipeline.stages.layer_maps import resolve_layer_map
from edgebert.pipeline.stages.losses import (
    attention_loss,
    hidden_state_loss,
    relation_loss,
    soft_target_loss,
)
from edgebert.targets.errors import InputError


def test_soft_targets_are_the_formula() -> None:
    student, teacher = torch.tensor([[1.0, -1.0, 0.5]]), torch.tensor([[2.0, 0.0, -1.0]])
    p, q = (torch.softmax(logits[0] / 3, 0) for logits in (teacher, student))
    kl = sum(float(a * (a / b).log()) for a, b in zip(p, q, strict=True))
    ce = -float(torch.log_softmax(student[0], 0)[2])
    loss = soft_target_loss(student, teacher, torch.tensor([2]), alpha=0.25, temperature=3)
    assert float(loss) == pytest.approx(0.25 * ce + 0.75 * 9 * kl, rel=1e-5)
    unlabeled = soft_target_loss(student, teacher, torch.tensor([-100]), 0.25, 3)
    assert float(unlabeled) == pytest.approx(0.75 * 9 * kl, rel=1e-5)


def test_several_labels_are_one_bernoulli_each() -> None:
    student, teacher = torch.tensor([[1.0, -1.0]]), torch.tensor([[0.0, 2.0]])
    p, q = torch.sigmoid(teacher[0] / 2), torch.sigmoid(student[0] / 2)
    kl = (p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()).mean()
    nothing = torch.full((1, 2), torch.nan)
    loss = soft_target_loss(student, teacher, nothing, 0.5, 2, "multi_label")
    assert float(loss) == pytest.approx(0.5 * 4 * float(kl), rel=1e-5)


def test_regression_is_squared_error() -> None:
    student, teacher = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [2.5]])
    targets = torch.tensor([0.0, torch.nan])
    loss = soft_target_loss(student, teacher, targets, 0.5, 2, "regression")
    assert float(loss) == pytest.approx(0.5 * (4 + 0.25) / 2 + 0.5 * 1.0)


def test_padding_counts_in_no_loss() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(2, 5, 8, generator=generator)
    theirs = torch.randn(2, 5, 12, generator=generator)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]).bool()
    padding = ~mask[:, :, None]
    before = relation_loss(ours, theirs, mask, 4)
    after = relation_loss(ours.masked_fill(padding, 7), theirs.masked_fill(padding, 3), mask, 4)
    assert float(before) > 0
    assert float(before) == pytest.approx(float(after), rel=1e-5)
    same = relation_loss(ours, ours, mask, 4)
    assert float(same) == pytest.approx(0, abs=1e-6)
    maps, target = torch.rand(2, 2, 3, 5, 5, generator=generator)
    both = mask[:, None, :, None] & mask[:, None, None, :]
    before = attention_loss(maps, target, mask)
    after = attention_loss(maps.masked_fill(~both, 9), target.masked_fill(~both, 4), mask)
    assert float(before) == pytest.approx(float(after), rel=1e-5)


def test_hidden_states_are_compared_token_by_token_whatever_the_padding() -> None:
    states = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    left = torch.cat([torch.full((2, 2, 4), 5.0), states], dim=1)
    masks = torch.ones(2, 3).bool(), torch.tensor([[0, 0, 1, 1, 1]] * 2).bool()
    assert float(hidden_state_loss(states, left, *masks)) == 0


def test_layer_maps() -> None:
    assert resolve_layer_map("uniform", 2, 6) == [(1, 3), (2, 6)]
    assert resolve_layer_map("uniform", 4, 12) == [(1, 3), (2, 6), (3, 9), (4, 12)]
    assert resolve_layer_map("uniform", 4, 2)[0] == (1, 1)
    assert resolve_layer_map("last", 2, 6) == [(1, 5), (2, 6)]
    assert resolve_layer_map(((2, 6),), 2, 6) == [(2, 6)]
    for rule, message in ((((1, 7),), "pair \\[1, 7\\]"), ((), "empty")):
        with pytest.raises(InputError, match=message):
            resolve_layer_map(rule, 2, 6)
    with pytest.raises(InputError, match="set layer_map=uniform"):
        resolve_layer_map("last", 7, 6)
