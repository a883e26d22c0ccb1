"""One distillation, readable in one place: teacher, student, training, comparison, checkpoint."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebert.calibration import Dataset, Row, load_data
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.cache import Cache, library_versions
from edgebert.pipeline.distill_request import (
    RECORD,
    DistillRequest,
    check_out,
    may_replace,
    read_settings,
)
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.folders import replace_folder
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.source import find_source
from edgebert.pipeline.summary import drift_lines
from edgebert.targets.errors import InputError

if TYPE_CHECKING:
    from edgebert.pipeline.stages.distill import Distill
    from edgebert.pipeline.stages.students import StudentSettings
    from edgebert.pipeline.stages.training import Report

_MADE = "student.json"  # in the cache: where the untrained student is
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
    stage, student_settings = read_settings(request.overrides)
    check_out(request)
    data = load_data(request.data)
    if not data.train:
        raise InputError("no train rows to learn from", request.data, "add train.jsonl to it")

    from edgebert.pipeline.stages.compare import compare
    from edgebert.pipeline.stages.layer_sharing import final_parameters
    from edgebert.pipeline.stages.load import count_parameters
    from edgebert.pipeline.stages.training import is_main_process
    from edgebert.pipeline.stages.unlabeled import read_unlabeled, without_held_out

    unlabeled = read_unlabeled(request.unlabeled) if request.unlabeled else ()
    kept = without_held_out(unlabeled, data)
    notes = data.notes
    if len(kept) < len(unlabeled):
        left_out = len(unlabeled) - len(kept)
        notes += (f"{left_out} unlabeled texts were left out: twice, or in the dev or test rows",)
    with _main_process_first():
        teacher = _load_teacher(request, cache, progress)
    if request.finetune_teacher:
        teacher = _finetune(teacher, stage, data, cache, progress)
    student, key = _student(
        request, student_settings, teacher, data, kept, stage.training.seed, cache, progress
    )
    sizes = count_parameters(teacher), final_parameters(student)
    work = cache.root / "distill" / cache.key(stage, key)[:32]
    with (
        replace_folder(request.out, may_replace)
        if is_main_process()
        else nullcontext(request.out) as folder
    ):
        with _training(progress, "distill") as report:
            distilled = stage(teacher, student, data, folder, work, kept, report)
        if not is_main_process():
            return Distilled(request.out, teacher.name, *sizes, None, notes)
        with progress.stage("compare teacher and student"):
            comparison = compare(teacher, distilled, data)
        result = Distilled(request.out, teacher.name, *sizes, comparison, notes)
        record = {
            "teacher": {"name": request.teacher, "sha256": teacher.sha256},
            "student": request.student,
            "data": {"name": data.name, "sha256": data.sha256, "unlabeled": len(kept)},
            "settings": asdict(stage) | asdict(student_settings),
            "metrics": [metric.model_dump() for metric in comparison.metrics] if comparison else [],
            "versions": library_versions(),
        }
        text = json.dumps(record, indent=2, sort_keys=True)
        (folder / RECORD).write_text(text + "\n", encoding="utf-8")
    shutil.rmtree(work, ignore_errors=True)
    return result


def _sha256_of_student(request: DistillRequest) -> str:
    """Hash over the student's own files, where it has some."""
    from edgebert.pipeline.stages.students import STUDENTS

    if request.student in STUDENTS:
        return ""
    if request.student.endswith(".json"):
        file = Path(request.student)
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    try:
        return find_source(request.student, allow_pickle=request.allow_pickle).sha256
    except InputError:
        return ""  # the student's own stage says what is wrong


def _student(
    request: DistillRequest,
    settings: "StudentSettings",
    teacher: Checkpoint,
    data: Dataset,
    unlabeled: tuple[Row, ...],
    seed: int,
    cache: Cache,
    progress: Progress,
) -> tuple[Checkpoint, str]:
    """The untrained student, and its key, which stands for all that it is made of."""
    from edgebert.pipeline.stages.students import make_student

    own_files = _sha256_of_student(request)
    key = cache.key(
        ("student", request.student, own_files, settings, seed),
        teacher.sha256,
        data.sha256,
        repr(unlabeled),
    )

    def make(folder: Path) -> None:
        made = make_student(
            request.student,
            teacher,
            (*data.train, *unlabeled),
            folder / "student",
            settings,
            seed=seed,
            allow_pickle=request.allow_pickle,
        )
        inside = made.path.is_relative_to(folder)  # or a folder of the user's, used in place
        where = made.path.relative_to(folder) if inside else made.path
        (folder / _MADE).write_text(json.dumps([str(where), made.name]), encoding="utf-8")

    with _main_process_first(), progress.stage(f"student {request.student}"):
        folder = cache.run(key, make)
    where, name = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    return Checkpoint(folder / where, name), key


def _load_teacher(request: DistillRequest, cache: Cache, progress: Progress) -> Checkpoint:
    """The teacher as it is, with a head unless it is to be fine-tuned."""
    from edgebert.pipeline.stages.load import HEAD_CURE, Load

    source = find_source(request.teacher, allow_pickle=request.allow_pickle)
    load = Load(source, require_head=not request.finetune_teacher)
    try:
        with progress.stage(f"teacher {source.name}"):
            return load.result(cache.run(cache.key(load, source.sha256), load))
    except InputError as error:
        cure = NO_HEAD if error.cure == HEAD_CURE else error.cure
        raise InputError(error.what, error.where, cure) from error


def _finetune(
    teacher: Checkpoint, stage: "Distill", data: Dataset, cache: Cache, progress: Progress
) -> Checkpoint:
    """The teacher, trained on the data."""
    from edgebert.pipeline.stages.finetune import Finetune
    from edgebert.pipeline.stages.training import is_main_process

    finetune = Finetune(stage.training)
    key = cache.key(finetune, teacher.sha256, data.sha256)
    work = cache.root / "distill" / key[:32]
    cached = cache.has(key)
    with _training(progress, "fine-tune the teacher", cached) as report:

        def make(out: Path) -> Checkpoint:
            return finetune(teacher, data, out / "checkpoint", work, report)

        if is_main_process():
            cache.run(key, make)
        elif not cached:  # it computes its share, and leaves the writing to the other
            make(work)
    with _main_process_first():
        made = cache.run(key, make)
    if is_main_process():
        shutil.rmtree(work, ignore_errors=True)
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


@contextmanager
def _training(progress: Progress, name: str, cached: bool = False) -> "Iterator[Report]":
    """Report a training: a bar on a terminal, one line elsewhere."""
    if progress.stream is None or not progress.stream.isatty():
        with progress.stage(name, cached):
            yield lambda step, steps, loss: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn(name),
        BarColumn(),
        TextColumn("step {task.completed}/{task.total}, loss {task.fields[loss]:.3g}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(file=progress.stream), transient=True) as bars:
        bar = bars.add_task(name, total=None, loss=float("nan"))
        yield lambda step, steps, loss: bars.update(bar, completed=step, total=steps, loss=loss)
    progress.note(f"{name:<44} {'done':>9}")
