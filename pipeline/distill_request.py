"""What a distillation is asked for, checked before anything runs."""

import difflib
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgebert.pipeline.training_settings import DistillOptions
from edgebert.targets.errors import InputError

RECORD = "distill.json"  # in the folder of a distilled checkpoint: how it came about


@dataclass(frozen=True)
class DistillRequest:
    """What a user asks for.

    Attributes:
        teacher: a catalogue name, a local folder or a hub id.
        student: `albert-like`, `distilbert-like` or `tinybert-4`; a configuration file (.json); or
            a catalogue name, a local folder or a hub id.
        data: labeled rows: a file, a folder, or the name of a shipped data set.
        out: where the checkpoint goes.
        unlabeled: more texts: a file, a folder, or the name of a shipped data set.
        overrides: `key=value` settings of the losses, the training or the student.
        finetune_teacher: first train the teacher's head, and the teacher, on the data.
        allow_pickle: read pytorch_model.bin where there is no model.safetensors.
    """

    teacher: str
    student: str
    data: str
    out: Path
    unlabeled: str | None = None
    overrides: tuple[str, ...] = ()
    finetune_teacher: bool = False
    allow_pickle: bool = False

    def command_line(self) -> str:
        """The command that makes the same checkpoint again."""
        pairs = [
            ("--teacher", self.teacher),
            ("--student", self.student),
            ("--data", self.data),
            ("--unlabeled", self.unlabeled),
            *(("--set", override) for override in self.overrides),
            ("--out", str(self.out)),
        ]
        words = [word for name, value in pairs if value is not None for word in (name, value)]
        switches = {
            "--finetune-teacher": self.finetune_teacher,
            "--allow-pickle": self.allow_pickle,
        }
        return shlex.join(
            ["edgebert", "distill", *words, *(name for name, given in switches.items() if given)]
        )


def read_options(overrides: Sequence[str]) -> DistillOptions:
    """Options from `key=value`; values are TOML, or bare words.

    Raises:
        InputError: an unknown key, with the nearest ones, or a value that does not fit.
    """
    known = {field.name for field in fields(DistillOptions)}
    values: dict[str, Any] = {}
    for override in overrides:
        name, equals, value = (part.strip() for part in override.partition("="))
        if not equals or name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or sorted(known)
            raise InputError(
                f"no setting '{name}'" if equals else f"cannot read --set {override}",
                f"settings: {', '.join(near)}",
                "write --set key=value",
            )
        try:
            values[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = value
    try:
        return DistillOptions(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise InputError(f"{name}: {first['msg']}", f"--set {name}={first['input']}") from error


def check_out(request: DistillRequest) -> None:
    """Refuse to write over what is not ours, before anything runs."""
    out = request.out.absolute()
    if out.exists():
        may_replace(out)
    for name in (request.teacher, request.student):
        if Path(name).exists() and Path(name).resolve() == out.resolve():
            raise InputError(
                "the result would replace what it is made of", str(out), "another --out"
            )


def may_replace(out: Path) -> None:
    """Let a new checkpoint take the place of an older distilled one, or of an empty folder."""
    if not out.is_dir():
        raise InputError("a file is where the checkpoint should go", str(out), "give another --out")
    if any(out.iterdir()) and not (out / RECORD).is_file():
        raise InputError(
            "the folder holds what no distillation put there", str(out), "give another --out"
        )
