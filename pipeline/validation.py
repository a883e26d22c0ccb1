"""Validate a finished bundle again: other data, another runner, another limit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgebert.calibration import load_data
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.cache import Cache
from edgebert.pipeline.drift import DriftReport, Gate
from edgebert.pipeline.gates import Limits, judge
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.recipe import Recipe, ValidateSettings
from edgebert.pipeline.runners import find_runner
from edgebert.pipeline.source import find_source
from edgebert.pipeline.summary import drift_lines, gate_lines
from edgebert.targets import Format
from edgebert.targets.errors import InputError


@dataclass(frozen=True)
class Validation:
    """The drift of a bundle's model files.

    Attributes:
        bundle: its folder.
        drift: by format.
        gates: the drift gate of each.
    """

    bundle: Path
    drift: dict[Format, DriftReport]
    gates: tuple[Gate, ...]

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
        }

    def text(self) -> str:
        """For people."""
        lines = [f"{self.bundle}  {'passed' if self.passed else 'FAILED'}"]
        for format, drift in self.drift.items():
            first, *others = [*drift_lines(drift), *(f"note: {note}" for note in drift.notes)]
            lines += [f"  {format:<8} {first}", *(f"  {'':<8} {line}" for line in others)]
        return "\n".join([*lines, *gate_lines(self.gates)])


def validate_bundle(
    path: Path, data: str | None, runner: str, max_drop: float | None, progress: Progress
) -> Validation:
    """See `edgebert.pipeline.validate`."""
    from edgebert.pipeline.stages.load import Load
    from edgebert.pipeline.stages.reference import Reference, ReferenceLogits
    from edgebert.pipeline.stages.validate import Validate

    find_runner(runner)
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
    reference = Reference("test", settings.test_rows or None, settings.seed)
    with progress.stage("reference test"):
        key = cache.key(reference, checkpoint.sha256, rows.sha256)
        folder = cache.run(key, lambda out: reference(checkpoint, rows, out))
    logits = ReferenceLogits(folder, "test")
    drift: dict[Format, DriftReport] = {}
    gates: list[Gate] = []
    for format in bundle.formats:
        with progress.stage(f"validate {format}"):
            report = Validate(seed=settings.seed)(
                checkpoint, bundle.model(format), rows, logits, bundle
            )
            drift[format] = report if recipe.report.texts else report.without_texts()
        gates += judge(limits, format, drift[format], random_weights=manifest.random_weights)
    return Validation(path, drift, tuple(gates))
