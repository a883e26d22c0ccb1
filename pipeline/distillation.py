"""One distillation, readable in one place: teacher, student, training, comparison, checkpoint."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgebert.calibration import Dataset, load_data
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.cache import Cache, library_versions
from edgebert.pipeline.distill_request import (
    RECORD,
    DistillRequest,
    check_out,
    may_replace,
    read_options,
)
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.folders import replace_folder
from edgebert.pipeline.progress import Progress, Report
from edgebert.pipeline.source import Source, find_source
from edgebert.pipeline.stage_runs import StageRuns
from edgebert.pipeline.student import unlabeled_texts, untrained_student
from edgebert.pipeline.summary import drift_lines
from edgebert.pipeline.training_settings import TrainingSettings
from edgebert.targets.errors import InputError

NO_HEAD = "add --finetune-teacher: it trains one on --data first"


@dataclass(frozen=True)
class Distilled:
    """What a distillation leaves.

    Attributes:
        path: the student's checkpoint.
        teacher: name of the teacher.
        teacher_parameters, student_parameters: of the classifiers; shared layers count once.
        comparison: teacher (reference) and student (artifact) on the test rows, or on the dev rows
            where there are none; None where there are neither.
        notes: what a reader must know.
    """

    path: Path
    teacher: str
    teacher_parameters: int
    student_parameters: int
    comparison: DriftReport | None
    notes: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """For programs."""
        found = asdict(self) | {"path": str(self.path)}
        if self.comparison is not None:
            found["comparison"] = self.comparison.model_dump(mode="json")
        return found

    def text(self) -> str:
        """For people."""
        sizes = self.student_parameters / 1e6, self.teacher_parameters / 1e6
        share = 100 * self.student_parameters / self.teacher_parameters
        lines = [
            str(self.path),
            f"  {sizes[0]:.2f} M parameters, {share:.0f} % of {self.teacher}'s {sizes[1]:.2f} M",
        ]
        if self.comparison is not None:
            first, *others = drift_lines(self.comparison)
            lines += [f"  teacher and student: {first}", *(f"  {line}" for line in others)]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def run_distillation(request: DistillRequest, cache: Cache, progress: Progress) -> Distilled:
    """Distill, and leave the student's checkpoint at `request.out`, whole or not at all.

    A run that was killed goes on where it was when it is asked for again, and ends with the same
    weights (on a GPU up to the order in which it adds). On many GPUs it is `accelerate launch
    $(which edgebert) distill ...`: every process calls this, and that of rank 0 writes.

    Raises:
        InputError: the input is wrong.
        MachineError: the machine lacks something.
    """
    options = read_options(request.overrides)
    check_out(request)
    data = load_data(request.data)
    if not data.train:
        raise InputError("no train rows to learn from", request.data, "add train.jsonl to it")

    from edgebert.pipeline.stages.compare import compare
    from edgebert.pipeline.stages.distill import Distill
    from edgebert.pipeline.stages.layer_sharing import final_parameters
    from edgebert.pipeline.stages.load import count_parameters
    from edgebert.pipeline.stages.training import is_main_process

    stage, runs = Distill(options), StageRuns(cache, progress)
    source = find_source(request.teacher, allow_pickle=request.allow_pickle)
    with _main_process_first():
        teacher = _load_teacher(source, request.finetune_teacher, runs)
    if request.finetune_teacher:
        teacher = _finetune(teacher, options.training, data, runs)
    with _main_process_first():
        unlabeled, notes = unlabeled_texts(request.unlabeled, options, source, data, runs)
        student = untrained_student(
            request.student, options, teacher, data, unlabeled, runs, request.allow_pickle
        )
    notes = (*data.notes, *notes)
    sizes = count_parameters(teacher), final_parameters(student)
    work = runs.work_folder(cache.key(stage, student.sha256, data.sha256, repr(unlabeled)))
    with (
        replace_folder(request.out, may_replace)
        if is_main_process()
        else nullcontext(request.out) as folder
    ):
        with progress.training("distill") as report:
            distilled = stage(teacher, student, data, folder, work, unlabeled, report)
        if not is_main_process():
            return Distilled(request.out, teacher.name, *sizes, None, notes)
        with progress.stage("compare teacher and student"):
            comparison = compare(teacher, distilled, data)
        result = Distilled(request.out, teacher.name, *sizes, comparison, notes)
        record = {
            "teacher": {"name": request.teacher, "sha256": teacher.sha256},
            "student": request.student,
            "data": {"name": data.name, "sha256": data.sha256, "unlabeled": len(unlabeled)},
            "settings": asdict(options),
            "metrics": [metric.model_dump() for metric in comparison.metrics] if comparison else [],
            "versions": library_versions(),
        }
        text = json.dumps(record, indent=2, sort_keys=True)
        (folder / RECORD).write_text(text + "\n", encoding="utf-8")
    shutil.rmtree(work, ignore_errors=True)
    return result


def _load_teacher(source: Source, finetune: bool, runs: StageRuns) -> Checkpoint:
    """The teacher as it is, with a head unless it is to be fine-tuned."""
    from edgebert.pipeline.stages.load import HEAD_CURE, Load

    load = Load(source, require_head=not finetune)
    try:
        return load.result(runs.run(f"teacher {source.name}", load, [source.sha256], load))
    except InputError as error:
        cure = NO_HEAD if error.cure == HEAD_CURE else error.cure
        raise InputError(error.what, error.where, cure) from error


def _finetune(
    teacher: Checkpoint, settings: TrainingSettings, data: Dataset, runs: StageRuns
) -> Checkpoint:
    """The teacher, trained on the data."""
    from edgebert.pipeline.stages.finetune import Finetune
    from edgebert.pipeline.stages.training import is_main_process

    finetune = Finetune(settings)
    inputs = [teacher.sha256, data.sha256]
    key = runs.cache.key(finetune, *inputs)

    def make(out: Path, work: Path, report: Report) -> None:
        finetune(teacher, data, out / "checkpoint", work, report)

    name, work = "fine-tune the teacher", runs.work_folder(key)
    if is_main_process():
        runs.train(name, finetune, inputs, make)
    elif not runs.cache.has(key):  # it computes its share, and leaves the writing to the other
        with runs.progress.training(name) as report:
            make(work, work, report)
    with _main_process_first():
        made = runs.cache.run(key, lambda out: make(out, work, lambda step, steps, loss: None))
    return Checkpoint(made / "checkpoint", teacher.name)


@contextmanager
def _main_process_first() -> Iterator[None]:
    """Under `accelerate launch` the other processes wait, and find in the cache what it made."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    from accelerate import PartialState

    with PartialState().main_process_first():
        yield
