"""The loss of one batch, which student and teacher both read."""

from typing import Any

import torch
from torch import nn

from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.stages.batches import Batch
from edgebert.pipeline.stages.layer_maps import resolve_layer_map
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.losses import (
    attention_loss,
    head_projection,
    hidden_state_loss,
    relation_loss,
    soft_target_loss,
)
from edgebert.pipeline.stages.projections import Projections
from edgebert.pipeline.training_settings import LossSettings
from edgebert.targets.errors import InputError


class Distillation(nn.Module):
    """Student and loss in the form that `run_training` takes.

    The student and its projections are trained and saved, the teacher is neither.

    Args:
        student, teacher: the checkpoints; the teacher has the student's labels, in any order.
        settings: what to learn.
        half: run the teacher in bfloat16.

    Raises:
        InputError: the settings do not fit the models.
    """

    def __init__(
        self, student: Checkpoint, teacher: Checkpoint, settings: LossSettings, half: bool
    ) -> None:
        super().__init__()
        self.settings = settings
        self.task = student.task
        self.student = load_model(student)
        model = load_model(teacher).requires_grad_(False)
        # A list hides the teacher from parameters() and state_dict().
        self._teacher = [model.to(torch.bfloat16) if half else model]
        self.columns = match_columns(student.labels, teacher.labels)
        self.pads_left = student.family.pads_left
        self.layer_map = resolve_layer_map(
            settings.layer_map,
            int(student.config.num_hidden_layers),
            int(teacher.config.num_hidden_layers),
        )
        widths = int(student.config.hidden_size), int(teacher.config.hidden_size)
        same = widths[0] == widths[1]
        self.projection: nn.Module = nn.Identity() if same else nn.Linear(*widths)
        self.embedding_projection: nn.Module = nn.Identity() if same else nn.Linear(*widths)
        self.head_projection: nn.Module = nn.Identity()
        if settings.attention_weight:
            heads = [_attention_heads(model) for model in (self.student, self._teacher[0])]
            self.head_projection = head_projection(*heads)
        self.recorders: tuple[Projections, ...] = ()
        if settings.relation_weight:
            self.relation_heads = settings.relation_heads or int(student.config.num_attention_heads)
            self.recorders = tuple(
                self._recorder(model, checkpoint)
                for model, checkpoint in ((self.student, student), (self._teacher[0], teacher))
            )

    def forward(
        self, student: Batch, teacher: Batch, labels: torch.Tensor, aligned: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Loss of one batch.

        Args:
            student: ids, mask and types [batch, seq] of the texts as the student reads them.
            teacher: the same as the teacher does.
            labels: the targets.
            aligned: whether both cut the text into the same tokens [batch].
        """
        settings = self.settings
        inner = {
            "output_hidden_states": bool(settings.hidden_weight or settings.embedding_weight),
            "output_attentions": bool(settings.attention_weight),
        }
        for recorder in self.recorders:
            recorder.clear()
        with torch.no_grad():
            theirs = self._teacher[0].to(labels.device)(**teacher, **inner)
        ours = self.student(**student, **inner)
        loss = soft_target_loss(
            ours.logits.float(),
            theirs.logits[:, self.columns].float(),
            labels,
            settings.alpha,
            settings.temperature,
            self.task,
        )
        if settings.compares_tokens and bool(aligned.any()):
            masks = [
                each["attention_mask"].bool() & aligned[:, None] for each in (student, teacher)
            ]
            loss = loss + self._token_losses(ours, theirs, *masks)
        return {"loss": loss}

    def _token_losses(
        self, ours: Any, theirs: Any, our_mask: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Weighted sum of the terms that compare tokens; masks are bool [batch, seq]."""
        settings = self.settings
        total = torch.zeros((), device=mask.device)
        if settings.embedding_weight:
            state = self.embedding_projection(ours.hidden_states[0])
            error = hidden_state_loss(state, theirs.hidden_states[0], our_mask, mask)
            total = total + settings.embedding_weight * error
        if settings.hidden_weight:
            errors = [
                hidden_state_loss(
                    self.projection(ours.hidden_states[m]), theirs.hidden_states[n], our_mask, mask
                )
                for m, n in self.layer_map
            ]
            total = total + settings.hidden_weight * torch.stack(errors).mean()
        # The two may be padded to different lengths; the compared texts fit into the shorter one.
        length = min(our_mask.shape[1], mask.shape[1])
        cut = slice(-length, None) if self.pads_left else slice(length)
        real = mask[:, cut]
        if settings.attention_weight:
            errors = []
            for m, n in self.layer_map:
                maps = ours.attentions[m - 1][..., cut, cut].movedim(1, -1)
                maps = self.head_projection(maps.float()).movedim(-1, 1)
                target = theirs.attentions[n - 1][..., cut, cut].float()
                errors.append(attention_loss(maps, target, real))
            total = total + settings.attention_weight * torch.stack(errors).mean()
        if settings.relation_weight:
            m, n = self.layer_map[-1]
            errors = [
                relation_loss(x[m - 1][:, cut], y[n - 1][:, cut], real, self.relation_heads)
                for x, y in zip(*(recorder.states for recorder in self.recorders), strict=True)
            ]
            total = total + settings.relation_weight * torch.stack(errors).mean()
        return total

    def _recorder(self, model: nn.Module, checkpoint: Checkpoint) -> Projections:
        """Record a model, whose widths the relation heads have to divide."""
        recorder = Projections(model, checkpoint)
        _probe(model)
        for states in recorder.states:
            width = states[-1].shape[-1]
            if width % self.relation_heads:
                raise InputError(
                    f"{self.relation_heads} relation heads do not divide the {width} numbers of a "
                    f"query of {checkpoint.name}",
                    "relation_heads",
                    "set a number that divides both models' widths",
                )
        return recorder


def match_columns(labels: tuple[str, ...], teacher_labels: tuple[str, ...]) -> list[int]:
    """For each label of the student, the teacher's logit; names match whatever their case.

    Raises:
        InputError: the labels differ.
    """
    ours, theirs = (
        [label.casefold().strip() for label in each] for each in (labels, teacher_labels)
    )
    if sorted(ours) != sorted(theirs):
        different = sorted(set(ours) ^ set(theirs)) or ["one of them twice"]
        raise InputError(
            f"the student has {len(ours)} labels, the teacher {len(theirs)}, and they differ",
            f"first of the differences: {', '.join(different[:4])}",
            "give a student without a classifier head: it gets the teacher's labels",
        )
    if ours == theirs:
        return list(range(len(ours)))
    return [theirs.index(label) for label in ours]


def _probe(model: nn.Module, **inner: bool) -> Any:
    """What the model gives for a row of two tokens."""
    ids = torch.ones((1, 2), dtype=torch.long)
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=torch.ones_like(ids), **inner)


def _attention_heads(model: nn.Module) -> int:
    """Attention maps of a layer; some families have fewer than their configuration says."""
    return int(_probe(model, output_attentions=True).attentions[0].shape[1])
