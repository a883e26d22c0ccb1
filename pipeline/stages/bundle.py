"""Bundle: put model files, tokenizer, proof and papers into one folder, whole or not at all."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from pydantic import JsonValue

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.bundle import (
    MANIFEST,
    Attribution,
    Bundle,
    DriftEntry,
    Manifest,
    ModelEntry,
    SourceEntry,
    StageEntry,
    describe_file,
    may_replace,
)
from edgebert.pipeline.cache import library_versions
from edgebert.pipeline.drift import DriftReport, Gate, Trial
from edgebert.pipeline.folders import replace_folder
from edgebert.pipeline.layers import LayerReport
from edgebert.pipeline.machines import MachineDrift
from edgebert.pipeline.phone_result import PhoneResult
from edgebert.pipeline.runners.runner import RUN_PY
from edgebert.pipeline.stages.golden import golden_tolerance, read_golden
from edgebert.pipeline.stages.measure import Measurement
from edgebert.targets import Format, Target


@dataclass(frozen=True)
class BundleInputs:
    """All that a build has found out.

    Attributes:
        checkpoint: the fp32 checkpoint that the model files are made of.
        source: where it came from.
        target: the device class.
        models: the model files that ship, one a format.
        golden: golden.jsonl, as the stage `Golden` left it.
        parameters: of the checkpoint, shared ones once.
        recipe: as resolved.
        stages: what ran, in order, with the cache keys.
        drift: on the test rows, by format; empty where the build was made without proof.
        gates: limits, and whether they hold.
        trials: the schemes that were tried.
        measurements: of the model files that ship.
        layers: where the drift of each arises.
        times_s: seconds that each stage took; 0 and a little where its result was kept.
        machines: how far other machines are from the one that built.
        phones: what the demo app measured.
        original: the checkpoint as it was loaded, which drift is measured against.
        attributions: of model and data.
        command: how to build it again.
        notes: what the report has to say besides.
        random_weights: True where the weights were made up.
    """

    checkpoint: Checkpoint
    source: SourceEntry
    target: Target
    models: tuple[Model, ...]
    golden: Path
    parameters: int
    recipe: Mapping[str, JsonValue] = field(default_factory=dict)
    stages: tuple[StageEntry, ...] = ()
    drift: Mapping[Format, DriftReport] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    trials: tuple[Trial, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    layers: tuple[LayerReport, ...] = ()
    times_s: Mapping[str, float] = field(default_factory=dict)
    machines: tuple[MachineDrift, ...] = ()
    phones: tuple[PhoneResult, ...] = ()
    original: Checkpoint | None = None
    attributions: tuple[Attribution, ...] = ()
    command: str = ""
    notes: tuple[str, ...] = ()
    random_weights: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether every gate held; None where all did, and none of them was about drift."""
        held = all(gate.passed for gate in self.gates)
        return held if self.drift or not held else None


def write_bundle(inputs: BundleInputs, out: Path) -> Bundle:
    """Write a bundle; an older one at `out` stays until the new one is complete.

    Raises:
        InputError: `out` holds what is no bundle, or cannot be written.
        MachineError: the disk is full.
    """
    from edgebert.pipeline.stages.report import build_report, write_report

    models = {model.info.format: model for model in inputs.models}
    with replace_folder(out, may_replace) as folder:
        shutil.copyfile(inputs.golden, folder / "golden.jsonl")
        golden = read_golden(inputs.golden)
        shutil.copyfile(inputs.checkpoint.path / "tokenizer.json", folder / "tokenizer.json")
        shutil.copyfile(RUN_PY, folder / "run.py")
        entries: dict[Format, ModelEntry] = {}
        for format, model in models.items():
            entries[format] = ModelEntry(
                **model.info.model_dump(),
                file=model.file.name,
                external_data=_copy_model(model, folder),
                golden_tolerance=golden_tolerance(golden, format, model.info.scheme),
            )
        manifest = _manifest(inputs, entries, folder)
        readme = folder / "README.md"
        readme.write_text(render_readme(manifest), encoding="utf-8")
        files = {**manifest.files, readme.name: describe_file(readme)}
        manifest = manifest.model_copy(update={"files": files})
        (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
        write_report(build_report(inputs, manifest), folder)
    return Bundle(out, manifest)


def requirements(target: Target, format: Format) -> tuple[str, ...]:
    """What pip has to install to run a format: the target's runtime, NumPy, tokenizers.

    They are pinned together, since a runtime built for one NumPy does not load with another.
    """
    runtime = Requirement(target.table(format).runtime)
    measured = _version(runtime.name)
    if measured and runtime.specifier.contains(measured):
        runtime.specifier = SpecifierSet(f"=={measured}")  # what was measured is what ships
    old_numpy = target.tflite is not None and target.tflite.module == "tflite_runtime"
    numpy = "numpy>=1.21,<2" if old_numpy else "numpy>=2,<3"
    return (str(runtime), numpy, f"tokenizers=={metadata.version('tokenizers')}")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def render_readme(manifest: Manifest) -> str:
    """The bundle's README.md: how to use it on its target."""
    template = resources.files("edgebert.pipeline").joinpath("templates/README.md.j2")
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.2f} %"
    return environment.from_string(template.read_text(encoding="utf-8")).render(m=manifest)


def _copy_model(model: Model, folder: Path) -> tuple[str, ...]:
    """Copy a model file and its external data; the names of the latter."""
    data = sorted(
        file
        for file in model.path.glob(f"{model.file.name}*")
        if file != model.file and file.is_file()
    )
    for file in (model.file, *data):
        shutil.copyfile(file, folder / file.name)
    return tuple(file.name for file in data)


def _manifest(inputs: BundleInputs, models: dict[Format, ModelEntry], folder: Path) -> Manifest:
    """The manifest of what is in `folder` so far."""
    checkpoint = inputs.checkpoint
    drift = []
    for format, report in inputs.drift.items():
        metric = report.metrics[0]
        drift.append(
            DriftEntry(
                format=format,
                runtime=report.runtime,
                rows=report.rows,
                metric=metric.name,
                agreement=report.agreement,
                reference=metric.reference,
                artifact=metric.artifact,
                drop=metric.drop,
                drop_low=metric.drop_low,
                drop_high=metric.drop_high,
            )
        )
    return Manifest(
        model=checkpoint.name,
        source=inputs.source,
        family=checkpoint.family.model_type,
        task=checkpoint.task,
        labels=checkpoint.labels,
        parameters=inputs.parameters,
        random_weights=inputs.random_weights,
        target=inputs.target,
        recipe=dict(inputs.recipe),
        requirements={format: requirements(inputs.target, format) for format in models},
        models=models,
        files={file.name: describe_file(file) for file in sorted(folder.iterdir())},
        pad_id=int(checkpoint.config.pad_token_id or 0),
        pads_left=checkpoint.family.pads_left,
        stages=inputs.stages,
        versions=library_versions(),
        drift=tuple(drift),
        passed=inputs.passed,
        attributions=inputs.attributions,
    )
