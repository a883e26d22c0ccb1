"""What a distillation starts from: the untrained student, and the texts beyond the labeled ones."""

import json
from pathlib import Path

from edgebert.calibration import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.source import Source, find_source
from edgebert.pipeline.stage_runs import StageRuns
from edgebert.pipeline.training_settings import DistillOptions
from edgebert.targets.errors import InputError

_MADE = "student.json"  # in the cache: where the untrained student is


def untrained_student(
    name: str,
    options: DistillOptions,
    teacher: Checkpoint,
    data: Dataset,
    unlabeled: tuple[Row, ...],
    runs: StageRuns,
    allow_pickle: bool = False,
) -> Checkpoint:
    """The student, as `make_student` makes it.

    Raises:
        InputError, MachineError: as `make_student`.
    """
    from edgebert.pipeline.stages.students import make_student

    settings = options.sizes

    def make(folder: Path) -> None:
        made = make_student(
            name,
            teacher,
            (*data.train, *unlabeled),
            folder / "student",
            settings,
            seed=options.seed,
            allow_pickle=allow_pickle,
        )
        inside = made.path.is_relative_to(folder)  # or a folder of the user's, used in place
        where = made.path.relative_to(folder) if inside else made.path
        (folder / _MADE).write_text(json.dumps([str(where), made.name]), encoding="utf-8")

    own_files = _sha256_of_student(name, allow_pickle)
    stage = ("student", name, own_files, settings, options.seed)
    inputs = [teacher.sha256, data.sha256, repr(unlabeled)]
    folder = runs.run(f"student {name}", stage, inputs, make)
    where, name = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    return Checkpoint(folder / where, name)


def unlabeled_texts(
    unlabeled: str | None, options: DistillOptions, teacher: Source, data: Dataset, runs: StageRuns
) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """The user's unlabeled texts and the augmented ones, without dev and test; and notes.

    Raises:
        InputError: as `read_unlabeled`, `Augment` and `find_source`.
    """
    from edgebert.pipeline.stages.unlabeled import read_unlabeled, without_held_out

    rows = read_unlabeled(unlabeled) if unlabeled else ()
    kept = without_held_out(rows, data)
    notes: tuple[str, ...] = ()
    if len(kept) < len(rows):
        count = len(rows) - len(kept)
        notes += (f"{count} unlabeled texts were left out: twice, or in the dev or test rows",)
    if options.augmented_copies:
        kept = without_held_out((*kept, *_augmented(options, teacher, data, runs)), data)
    return kept, notes


def _augmented(
    options: DistillOptions, teacher: Source, data: Dataset, runs: StageRuns
) -> tuple[Row, ...]:
    """The train texts with words that a masked language model put in."""
    from edgebert.pipeline.stages.augment import Augment, read_texts
    from edgebert.pipeline.stages.load import Load

    source = find_source(options.language_model) if options.language_model else teacher
    load = Load(source, require_head=False)
    loaded = runs.run(f"language model {source.name}", load, [source.sha256], load)
    model = load.result(loaded)
    stage = Augment(
        options.augmented_copies, options.augmented_share, options.max_length, options.seed
    )
    inputs = [model.sha256, data.sha256]
    return read_texts(runs.run("augment", stage, inputs, lambda out: stage(model, data.train, out)))


def _sha256_of_student(name: str, allow_pickle: bool) -> str:
    """Hash over the student's own files, where it has some."""
    from edgebert.pipeline.stages.students import STUDENTS

    if name in STUDENTS:
        return ""
    if name.endswith(".json"):
        file = Path(name)
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    try:
        return find_source(name, allow_pickle=allow_pickle).sha256
    except InputError:
        return ""  # the student's own stage says what is wrong
