"""Distillation losses, each a function of student and teacher tensors, averaged over what is not padding."""

import torch
from torch import nn


def soft_target_loss(
    student: torch.Tensor,
    teacher: torch.Tensor,
    labels: torch.Tensor,
    alpha: float,
    temperature: float,
) -> torch.Tensor:
    """alpha * CE + (1 - alpha) * T^2 * KL (Hinton et al. 2015, arXiv:1503.02531; DistilBERT, arXiv:1910.01108).

    Args:
        student, teacher: logits [batch, labels].
        labels: label ids [batch]; -100 where a text has no label, which then counts in the KL term only.
        alpha: weight of the labels.
        temperature: T, softens both distributions.
    """
    soft = nn.functional.kl_div(
        nn.functional.log_softmax(student / temperature, dim=-1),
        nn.functional.log_softmax(teacher / temperature, dim=-1),
        log_target=True,
        reduction="batchmean",
    )
    loss = (1 - alpha) * temperature**2 * soft
    if bool((labels >= 0).any()):
        loss = loss + alpha * nn.functional.cross_entropy(student, labels, ignore_index=-100)
    return loss


def hidden_state_loss(
    student: torch.Tensor, teacher: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Mean squared error of hidden states (TinyBERT, Jiao et al. 2019, arXiv:1909.10351, equation 8).

    Args:
        student, teacher: hidden states [batch, seq, hidden], the student's already projected.
        mask: attention mask [batch, seq].
    """
    error = (student - teacher).pow(2).mean(dim=-1)  # [batch, seq]
    return (error * mask).sum() / mask.sum()
