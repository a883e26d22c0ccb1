"""Which teacher layer each student layer learns from."""

from edgebert.pipeline.training_settings import LayerMap, Pair
from edgebert.targets.errors import InputError


def resolve_layer_map(rule: LayerMap, student_layers: int, teacher_layers: int) -> list[Pair]:
    """The pairs of a rule, or of an explicit list.

    `uniform` is m -> m * N / M (TinyBERT, Jiao et al. 2019, arXiv:1909.10351, section 4.1), `last`
    is m -> N - M + m (PKD, Sun et al. 2019, arXiv:1908.09355, section 3), N the layers of the
    teacher, M those of the student.

    Raises:
        InputError: a layer that is not there, or `last` for a student deeper than its teacher.
    """
    if rule == "uniform":
        depths = range(1, student_layers + 1)
        return [(m, max(1, round(m * teacher_layers / student_layers))) for m in depths]
    if rule == "last":
        skipped = teacher_layers - student_layers
        if skipped < 0:
            raise InputError(
                f"layer_map 'last': the student has {student_layers} layers, "
                f"the teacher {teacher_layers}",
                "",
                "set layer_map=uniform",
            )
        return [(m, skipped + m) for m in range(1, student_layers + 1)]
    for ours, theirs in rule:
        if not (1 <= ours <= student_layers and 1 <= theirs <= teacher_layers):
            raise InputError(
                f"layer_map has the pair [{ours}, {theirs}]",
                f"the student has the layers 1..{student_layers}, the teacher 1..{teacher_layers}",
                "give pairs [student layer, teacher layer]",
            )
    if not rule:
        raise InputError("layer_map is empty", "", "set layer_map=uniform, last or pairs")
    return list(rule)
