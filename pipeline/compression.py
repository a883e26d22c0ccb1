"""The part of a build that trains and cuts: distill, prune, recover, quantize_aware."""

from pathlib import Path

from edgebert.calibration import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.planning import Plan
from edgebert.pipeline.progress import Report
from edgebert.pipeline.stage_runs import StageRuns
from edgebert.pipeline.training_settings import DistillSettings

_CHECKPOINT = "checkpoint"


def compress(original: Checkpoint, plan: Plan, runs: StageRuns) -> tuple[Checkpoint, list[str]]:
    """The checkpoint as the recipe wants it, and notes for the report.

    Args:
        original: the model as it was loaded, the teacher of every training.
        plan: of the build.
        runs: its stages.

    Raises:
        InputError: the recipe does not fit the model or the data.
    """
    checkpoint, notes = _distill(original, plan, runs)
    if plan.recipe.prune.wanted:
        checkpoint = _prune(checkpoint, plan, runs)
    if plan.recipe.recover is not None:
        checkpoint = _train("recover", plan.recipe.recover, original, checkpoint, plan, runs)
    if plan.recipe.trains_quantizers:
        checkpoint = _quantize_aware(checkpoint, plan, runs)
    return checkpoint, notes


def _distill(teacher: Checkpoint, plan: Plan, runs: StageRuns) -> tuple[Checkpoint, list[str]]:
    """A student of another shape, trained by the model."""
    from edgebert.pipeline.student import unlabeled_texts, untrained_student

    settings = plan.recipe.distill
    if settings is None:
        return teacher, []
    data = _data(plan)
    unlabeled, notes = unlabeled_texts(settings.unlabeled, settings, plan.source, data, runs)
    student = untrained_student(settings.student, settings, teacher, data, unlabeled, runs)
    name = f"distill into {settings.student}"
    return _train(name, settings, teacher, student, plan, runs, unlabeled), list(notes)


def _prune(checkpoint: Checkpoint, plan: Plan, runs: StageRuns) -> Checkpoint:
    from edgebert.pipeline.stages.prune import Prune

    data, stage = plan.data, Prune(plan.recipe.prune)
    inputs = [checkpoint.sha256, data.sha256 if data else ""]
    folder = runs.run("prune", stage, inputs, lambda out: stage(checkpoint, data, out))
    return Checkpoint(folder, checkpoint.name)


def _train(
    name: str,
    settings: DistillSettings,
    teacher: Checkpoint,
    student: Checkpoint,
    plan: Plan,
    runs: StageRuns,
    unlabeled: tuple[Row, ...] = (),
) -> Checkpoint:
    """Train a student as its teacher says."""
    from edgebert.pipeline.stages.distill import Distill

    data, stage = _data(plan), Distill(settings)

    def make(out: Path, work: Path, report: Report) -> None:
        stage(teacher, student, data, out / _CHECKPOINT, work, unlabeled, report)

    inputs = [teacher.sha256, student.sha256, data.sha256, repr(unlabeled)]
    return Checkpoint(runs.train(name, stage, inputs, make) / _CHECKPOINT, student.name)


def _quantize_aware(checkpoint: Checkpoint, plan: Plan, runs: StageRuns) -> Checkpoint:
    """Train with fake quantizers, for the scheme that computes with their ranges."""
    from edgebert.pipeline.stages.quantize_aware import QuantizeAware

    recipe, data = plan.recipe, _data(plan)
    assert recipe.quantize_aware is not None
    stage = QuantizeAware(
        recipe.quantize_aware, recipe.calibration, plan.trained_scheme.reduce_range
    )

    def make(out: Path, work: Path, report: Report) -> None:
        stage(checkpoint, data, out / _CHECKPOINT, work, report)

    folder = runs.train("quantize_aware", stage, [checkpoint.sha256, data.sha256], make)
    return Checkpoint(folder / _CHECKPOINT, checkpoint.name)


def _data(plan: Plan) -> Dataset:
    assert plan.data is not None  # the plan refuses a recipe that trains without data
    return plan.data
