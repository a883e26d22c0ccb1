"""Distillation losses, each a function of student and teacher tensors, averaged over what is real.

What is averaged over is rows, or tokens that are not padding; a row without a label counts in the
teacher's terms only.
"""

import math

import torch
from torch import nn
from torch.nn import functional

from edgebert.pipeline.artifact import Task

_NEVER = -1e4  # a score whose probability is 0


def soft_target_loss(
    student: torch.Tensor,
    teacher: torch.Tensor,
    targets: torch.Tensor,
    alpha: float,
    temperature: float,
    task: Task = "single_label",
) -> torch.Tensor:
    """The soft targets: alpha * label loss + (1 - alpha) * T^2 * KL.

    Hinton et al. 2015, arXiv:1503.02531; in the form of DistilBERT, arXiv:1910.01108. With several
    labels the KL is that of one Bernoulli a label; for regression it is the squared error to the
    teacher's number, which has no temperature.

    Args:
        student: logits [batch, labels].
        teacher: the same.
        targets: as `target_tensor` has them.
        alpha: weight of the labels.
        temperature: T, softens both distributions.
        task: what the head is for.
    """
    loss = (1 - alpha) * teacher_loss(student, teacher, temperature, task)
    known = targets >= 0 if task == "single_label" else ~targets.isnan()
    if alpha and bool(known.any()):
        loss = loss + alpha * label_loss(student, targets, task)
    return loss


def label_loss(student: torch.Tensor, targets: torch.Tensor, task: Task) -> torch.Tensor:
    """Cross entropy, binary cross entropy or squared error over the rows that have a label."""
    if task == "single_label":
        return functional.cross_entropy(student, targets, ignore_index=-100)
    answers = student if task == "multi_label" else student[:, 0]
    known = ~targets.isnan()
    if task == "multi_label":
        return functional.binary_cross_entropy_with_logits(answers[known], targets[known])
    return functional.mse_loss(answers[known], targets[known])


def teacher_loss(
    student: torch.Tensor, teacher: torch.Tensor, temperature: float, task: Task
) -> torch.Tensor:
    """T^2 * KL(teacher || student) of the softened answers; squared error for regression."""
    if task == "regression":
        return functional.mse_loss(student, teacher)
    student, teacher = student / temperature, teacher / temperature
    if task == "multi_label":
        student, teacher = (
            torch.stack([functional.logsigmoid(logits), functional.logsigmoid(-logits)])
            for logits in (student, teacher)
        )  # [2, batch, labels]
        kl = (teacher.exp() * (teacher - student)).sum() / student[0].numel()
        return temperature**2 * kl
    kl = functional.kl_div(
        functional.log_softmax(student, dim=-1),
        functional.log_softmax(teacher, dim=-1),
        log_target=True,
        reduction="batchmean",
    )
    return temperature**2 * kl


def hidden_state_loss(
    student: torch.Tensor, teacher: torch.Tensor, student_mask: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Mean squared error of hidden states (TinyBERT, Jiao et al. 2019, arXiv:1909.10351, eq. 8).

    At the embedding output it is their embedding loss (equation 9).

    Args:
        student: hidden states [batch, seq, hidden], projected to the teacher's width.
        teacher: the same; its padding may differ.
        student_mask: which of the student's tokens to compare [batch, seq], bool.
        mask: which of the teacher's, the same number of each row.
    """
    return functional.mse_loss(student[student_mask].float(), teacher[mask].float())


def attention_loss(
    student: torch.Tensor, teacher: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Squared error of attention maps (TinyBERT, Jiao et al. 2019, arXiv:1909.10351, eq. 7).

    They compare scores before the softmax; here it is the probabilities, which every family gives,
    summed over the keys, so that long texts count as much as short ones.

    Args:
        student: attention probabilities [batch, heads, query, key].
        teacher: the same.
        mask: which tokens to compare [batch, seq], bool.
    """
    error = (student - teacher).pow(2) * mask[:, None, None, :]
    per_query = error.sum(dim=-1).mean(dim=1)  # [batch, query]
    return (per_query * mask).sum() / mask.sum()


def relation_loss(
    student: torch.Tensor, teacher: torch.Tensor, mask: torch.Tensor, heads: int
) -> torch.Tensor:
    """KL(teacher || student) of the relations among queries, among keys or among values.

    MiniLM v2, Wang et al. 2020, arXiv:2012.15828, equations 3 to 6: vectors are cut into `heads`
    relation heads, whatever the model's own number, so that widths may differ; a relation is
    softmax(X X^T / sqrt(d)). Values alone are the second loss of MiniLM (arXiv:2002.10957).

    Args:
        student: queries, keys or values [batch, seq, width].
        teacher: the same, of its own width.
        mask: which tokens to compare [batch, seq], bool.
        heads: number of relation heads; divides both widths.
    """

    def relations(states: torch.Tensor) -> torch.Tensor:
        split = states.float().unflatten(-1, (heads, -1)).transpose(1, 2)
        scores = split @ split.transpose(-1, -2) / math.sqrt(split.shape[-1])
        return functional.log_softmax(scores.masked_fill(~mask[:, None, None, :], _NEVER), dim=-1)

    ours, theirs = relations(student), relations(teacher)  # [batch, heads, seq, seq]
    kl = (theirs.exp() * (theirs - ours)).sum(dim=-1).mean(dim=1)  # [batch, seq]
    return (kl * mask).sum() / mask.sum()


def head_projection(student_heads: int, teacher_heads: int) -> nn.Module:
    """Learned map of attention maps [..., heads] to the teacher's number of heads, if they differ.

    It starts as the mean of the student's heads.
    """
    if student_heads == teacher_heads:
        return nn.Identity()
    projection = nn.Linear(student_heads, teacher_heads, bias=False)
    nn.init.constant_(projection.weight, 1 / student_heads)
    return projection
