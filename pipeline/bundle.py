"""The bundle: the folder that a build leaves, and its manifest."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from edgebert.pipeline.artifact import ModelInfo, Task
from edgebert.pipeline.folders import replace_folder
from edgebert.targets import Format, Target
from edgebert.targets.errors import InputError

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
# Times and measurements are in these three alone, so the manifest, which must not differ from run
# to run, has no checksums of them.
REPORTS = ("report.json", "report.html", "junit.xml")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Entry):
    """Size and hash of a file of the bundle."""

    bytes: int
    sha256: str


class ModelEntry(ModelInfo):
    """A model file.

    Attributes:
        file: its name in the bundle.
        external_data: names of the files with its weights, where they are not in it.
        golden_tolerance: largest difference of a logit from golden.jsonl that still proves it.
    """

    file: str
    external_data: tuple[str, ...] = ()
    golden_tolerance: float = Field(gt=0)


class StageEntry(_Entry):
    """A stage of the build and the key of its result in the cache."""

    name: str
    key: str


class DriftEntry(_Entry):
    """Drift in short; report.json has all of it. `drop` is reference minus artifact, a fraction."""

    format: Format
    runtime: str
    rows: int
    metric: str
    reference: float
    artifact: float
    drop: float
    drop_low: float
    drop_high: float
    agreement: float | None


class SourceEntry(_Entry):
    """What the bundle was made of, as it was asked for.

    Attributes:
        model: catalogue name, folder or hub id.
        allow_pickle: whether a pickle was read.
        checkpoint_sha256: of the fp32 checkpoint.
        data: file, folder or name of the shipped data set; None where it was built without.
    """

    model: str
    allow_pickle: bool = False
    checkpoint_sha256: str
    data: str | None = None


class Attribution(_Entry):
    """What has to be said of a model or a data set where the bundle is passed on."""

    what: str
    license: str
    attribution: str = ""


class Manifest(_Entry):
    """What is in a bundle. The same inputs, recipe and versions give the same bytes.

    Attributes:
        model, family, task: the checkpoint.
        source: what it was made of.
        labels: in the order of their ids.
        parameters: of the fp32 checkpoint, shared ones once.
        random_weights: True where the weights were made up, so that accuracy means nothing.
        target: the device class as it was.
        recipe: as resolved.
        requirements: pip requirements that run each format, runtime first.
        models: the model files.
        files: every file but the manifest and the reports.
        pad_id, pads_left: what rows of a TFLite file are padded with, and on which side.
        stages: in the order they ran.
        versions: of the libraries that decide the result.
        drift: per format; empty where the build was made without proof.
        passed: True when every gate held; None without proof.
        attributions: of model and data.
    """

    schema_version: Literal[1] = 1
    model: str
    source: SourceEntry
    family: str
    task: Task
    labels: tuple[str, ...]
    parameters: int
    random_weights: bool = False
    target: Target
    recipe: dict[str, JsonValue]
    requirements: dict[Format, tuple[str, ...]]
    models: dict[Format, ModelEntry] = Field(min_length=1)
    files: dict[str, FileEntry]
    pad_id: int
    pads_left: bool
    stages: tuple[StageEntry, ...]
    versions: dict[str, str]
    drift: tuple[DriftEntry, ...]
    passed: bool | None
    attributions: tuple[Attribution, ...]

    def to_json(self) -> str:
        """The text of manifest.json: sorted keys, so that the same content is the same bytes."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"


def describe_file(file: Path) -> FileEntry:
    """Size and SHA-256 of a file."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return FileEntry(bytes=file.stat().st_size, sha256=digest.hexdigest())


@dataclass(frozen=True)
class BundledModel:
    """A model file in a bundle."""

    file: Path
    info: ModelEntry


@dataclass(frozen=True)
class Bundle:
    """A bundle on disk; `Bundle.open` is the way to one.

    Attributes:
        path: the folder.
        manifest: what is in it.
    """

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path) -> "Bundle":
        """Read a bundle and hold every file to its size and checksum.

        Raises:
            InputError: no bundle, an unknown schema, or a file that is missing, short or altered.
        """
        manifest = _read_manifest(path / MANIFEST)
        for model in manifest.models.values():
            for name in (model.file, *model.external_data):
                if name not in manifest.files:
                    raise InputError(
                        f"the manifest has no checksum of {name}", str(path / MANIFEST)
                    )
        for name, entry in manifest.files.items():
            _check_file(path, name, entry)
        return cls(path, manifest)

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats it has, in the order of the target."""
        return tuple(f for f in self.manifest.target.formats if f in self.manifest.models)

    def info(self, format: Format) -> ModelEntry:
        """The description of a model file.

        Raises:
            InputError: the bundle has no such format.
        """
        if format not in self.manifest.models:
            raise InputError(
                f"the bundle has no {format} file",
                str(self.path),
                f"it has: {', '.join(self.formats)}",
            )
        return self.manifest.models[format]

    def file(self, format: Format) -> Path:
        """The model file of a format."""
        return self.path / self.info(format).file

    def model(self, format: Format) -> "BundledModel":
        """The model file of a format with its description."""
        return BundledModel(self.file(format), self.info(format))

    def size_mb(self, format: Format) -> float:
        """Size of a model file with its external data, in MB (1e6 bytes)."""
        info = self.info(format)
        names = (info.file, *info.external_data)
        return sum(self.manifest.files[name].bytes for name in names) / 1e6


def _read_manifest(file: Path) -> Manifest:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"not a bundle: {error.strerror}", str(file), "`edgebert build` makes one"
        ) from error
    except ValueError as error:
        raise InputError(f"not JSON: {error}", str(file), "build the bundle again") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise InputError(
            f"schema version {version}, and this edgebert reads {SCHEMA_VERSION}",
            str(file),
            "build the bundle again, or use the edgebert that made it",
        )
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{field}: {first['msg']}", str(file), "build the bundle again") from error


def _check_file(folder: Path, name: str, entry: FileEntry) -> None:
    file, cure = folder / name, "copy or build the bundle again"
    if Path(name).name != name:
        raise InputError(f"'{name}' is no name of a file in the bundle", str(folder / MANIFEST))
    if not file.is_file():
        raise InputError(f"{name} is missing", str(file), cure)
    size = file.stat().st_size
    if size != entry.bytes:
        raise InputError(f"{name} has {size} bytes, not {entry.bytes}", str(file), cure)
    if describe_file(file).sha256 != entry.sha256:
        raise InputError(f"{name} does not match its checksum", str(file), cure)


def may_replace(out: Path) -> None:
    """Let a new bundle take the place of an older one or of an empty folder, and of nothing else.

    Raises:
        InputError: a file, or a folder with something in it that no build puts there.
    """
    if not out.is_dir():
        raise InputError("a file is where the bundle should go", str(out), "give another --out")
    names = {entry.name for entry in out.iterdir()} - {"__pycache__"}  # from importing run.py
    known: set[str] = set()
    if MANIFEST in names:
        known = {MANIFEST, *REPORTS}
        try:
            known |= json.loads((out / MANIFEST).read_text(encoding="utf-8"))["files"].keys()
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            known = set()  # not a manifest of ours: leave it alone
    if foreign := sorted(names - known):
        raise InputError(
            f"the folder holds what no build put there: {', '.join(foreign[:4])}",
            str(out),
            "give another --out, or move these away",
        )


def copy_bundle(source: Path, out: Path) -> Bundle:
    """Put a copy of a bundle at `out`; an older one stays there until the copy is complete.

    Raises:
        InputError: `source` is no whole bundle, or `out` holds what is none.
        MachineError: the disk is full.
    """
    manifest = Bundle.open(source).manifest
    with replace_folder(out, may_replace) as folder:
        for file in source.iterdir():
            shutil.copyfile(file, folder / file.name)
    return Bundle(out, manifest)
