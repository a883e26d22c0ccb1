"""Validate a finished bundle again: other data, another runner, another limit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgebert.calibration import load_data
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.cache import Cache
from edgebert.pipeline.drift import DriftReport, Gate
from edgebert.pipeline.gates import Limits, judge
from edgebert.pipeline.machines import MachineDrift, judge_machines
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.recipe import Recipe, ValidateSettings
from edgebert.pipeline.runners import find_runner
from edgebert.pipeline.source import find_source
from edgebert.pipeline.summary import changed_labels, drift_lines, gate_lines
from edgebert.targets import Format
from edgebert.targets.errors import InputError


@dataclass(frozen=True)
class Validation:
    """The drift of a bundle's model files.

    Attributes:
        bundle: its folder.
        drift: by format.
        gates: the drift gate of each, and those of the machines.
        machines: how far another machine is from this one; empty where it ran here.
    """

    bundle: Path
    drift: dict[Format, DriftReport]
    gates: tuple[Gate, ...]
    machines: tuple[MachineDrift, ...] = ()

    @property
    def passed(self) -> bool:
        """True when no gate failed."""
        return all(gate.passed for gate in self.gates)

    def describe(self) -> dict[str, Any]:
        """For programs."""
        return {
            "bundle": str(self.bundle),
            "passed": self.passed,
            "gates": [gate.model_dump(mode="json") for gate in self.gates],
            "drift": {
                format: drift.model_dump(mode="json") for format, drift in self.drift.items()
            },
            "machines": [one.model_dump(mode="json") for one in self.machines],
        }

    def text(self) -> str:
        """For people."""
        lines = [f"{self.bundle}  {'passed' if self.passed else 'FAILED'}"]
        for format, drift in self.drift.items():
            first, *others = [*drift_lines(drift), *(f"note: {note}" for note in drift.notes)]
            lines += [f"  {format:<8} {first}", *(f"  {'':<8} {line}" for line in others)]
        for one in self.machines:
            lines.append(f"  {one.format:<8} {one.text()}")
            lines += [f"  {'':<8} {text}" for text in changed_labels(one)]
        return "\n".join([*lines, *gate_lines(self.gates)])


def validate_bundle(
    path: Path,
    data: str | None,
    runner: str,
    max_drop: float | None,
    progress: Progress,
    formats: tuple[Format, ...] = (),
    max_rows: int | None = None,
) -> Validation:
    """See `edgebert.pipeline.validate`."""
    from edgebert.pipeline.stages.load import Load
    from edgebert.pipeline.stages.reference import Reference, ReferenceLogits
    from edgebert.pipeline.stages.validate import Validate
    from edgebert.pipeline.stages.validate_on import ValidateOn

    place = find_runner(runner)
    bundle = Bundle.open(path)
    manifest = bundle.manifest
    name = data or manifest.source.data
    if name is None:
        raise InputError(
            "the bundle was built without data", str(path), "give --data FILE or FOLDER"
        )
    recipe = Recipe.model_validate(manifest.recipe)
    built_with = (
        manifest.target.max_drop if recipe.gates.max_drop is None else recipe.gates.max_drop
    )
    limits = Limits(
        max_drop=built_with if max_drop is None else max_drop, confident=recipe.gates.confident
    )
    rows = load_data(name)
    cache = Cache()
    source = find_source(
        manifest.source.model,
        allow_pickle=manifest.source.allow_pickle,
        init_random=manifest.random_weights,
    )
    load = Load(source, manifest.labels) if manifest.random_weights else Load(source)
    checkpoint = load.result(cache.run(cache.key(load, source.sha256), load))
    if checkpoint.sha256 != manifest.source.checkpoint_sha256:
        raise InputError(
            f"{manifest.source.model} is not the checkpoint that the bundle was made of",
            str(checkpoint.path),
            "put the same checkpoint back, or build the bundle again",
        )
    # The rows of the build, so that the result can be compared with its own; of other data all.
    settings = ValidateSettings() if data else recipe.validate_
    limit = max_rows or settings.test_rows or None
    if place.emulated and max_rows is None:
        limit = min(settings.device_rows, limit or settings.device_rows)
    reference = Reference("test", limit, settings.seed)
    with progress.stage("reference test"):
        key = cache.key(reference, checkpoint.sha256, rows.sha256)
        folder = cache.run(key, lambda out: reference(checkpoint, rows, out))
    logits = ReferenceLogits(folder, "test")
    drift: dict[Format, DriftReport] = {}
    gates: list[Gate] = []
    machines: list[MachineDrift] = []
    for format in formats or bundle.formats:
        with progress.stage(f"validate {format}" + f" on {runner}" * (runner != "local")):
            if runner == "local":
                model, stage = bundle.model(format), Validate(seed=settings.seed)
                drift[format] = stage(checkpoint, model, rows, logits, bundle)
            else:
                on_device = ValidateOn(place, settings.seed)
                drift[format], apart = on_device(
                    checkpoint, bundle, format, rows, logits, cache, progress
                )
                machines.append(apart)
        gates += judge(limits, format, drift[format], random_weights=manifest.random_weights)
    for apart in machines:
        gates += judge_machines(apart)
    if not recipe.report.texts:
        drift = {format: report.without_texts() for format, report in drift.items()}
        machines = [apart.without_texts() for apart in machines]
    return Validation(path, drift, tuple(gates), tuple(machines))
