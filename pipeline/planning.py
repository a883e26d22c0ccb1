"""A plan: everything a build is asked for, resolved and checked before anything runs."""

import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebert.calibration import Dataset, load_data
from edgebert.pipeline.build_request import BuildRequest
from edgebert.pipeline.bundle import Attribution
from edgebert.pipeline.gates import Limits
from edgebert.pipeline.plan_checks import check_plan
from edgebert.pipeline.recipe import AUTO, GateSettings, Recipe, load_recipe
from edgebert.pipeline.schemes import SCHEMES, Scheme, find_scheme
from edgebert.pipeline.source import Source, find_source
from edgebert.targets import FORMATS, Format, Target, load_target
from edgebert.targets.errors import InputError

if TYPE_CHECKING:
    from edgebert.pipeline.stages.export_litert import ExportLitert
    from edgebert.pipeline.stages.export_onnx import ExportOnnx
    from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
    from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx


# Schemes with the ranges of quantization-aware training, in 8 bits and in 7.
TRAINED = ("static_wi8c_ai8_trained", "static_wi7c_ai8_trained")


@dataclass(frozen=True)
class Plan:
    """What one build will do.

    Attributes:
        source: the model.
        target: the device class.
        recipe: the settings of the stages.
        data: None where the build is made without proof.
        data_name: how it was asked for.
        formats: the model files to build.
        limits: of the gates.
        out: where the bundle goes.
        command: the command line that makes this build again.
        validate_on: runners that the finished bundle is validated on too.
    """

    source: Source
    target: Target
    recipe: Recipe
    data: Dataset | None
    data_name: str | None
    formats: tuple[Format, ...]
    limits: Limits
    out: Path
    command: str
    validate_on: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[object, ...]:
        """All that decides the bundle besides the contents of model and data."""
        name = self.data.name if self.data else ""
        return (
            self.source,
            self.target,
            self.recipe,
            self.formats,
            self.limits,
            name,
            self.command,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report has to say."""
        notes = [*self.source.notes, *(self.data.notes if self.data else ())]
        here = platform.machine()
        if here != self.target.arch:
            notes.append(f"measured on {here}; the processor of the target is {self.target.arch}")
        if "tflite" in self.formats and self.target.old_runtime:
            notes.append(
                f"model.tflite was measured on LiteRT; the device runs {self.target.old_runtime}: "
                "`python run.py --check` proves it there"
            )
        return tuple(notes)

    @property
    def random_labels(self) -> tuple[str, ...]:
        """Labels that a model with random weights gets: those of the data, or two made-up ones."""
        made_up = self.source.random_weights and self.data is not None
        names = {row.label for row in self.data.train} if made_up and self.data else set()
        if names and all(isinstance(name, str) for name in names):
            return tuple(sorted(map(str, names)))
        return ("negative", "positive")

    @property
    def attributions(self) -> tuple[Attribution, ...]:
        """Licenses of model and data, where they are known."""
        entries = [
            Attribution(
                what="model",
                license=self.source.license or "unknown",
                attribution=self.source.attribution,
            )
        ]
        if self.data is not None:
            license = self.data.license or "the user's own"
            entries.append(
                Attribution(
                    what=f"data {self.data.name}",
                    license=license,
                    attribution=self.data.attribution,
                )
            )
        return tuple(entries)

    def candidates(self, format: Format) -> tuple[str, ...]:
        """The schemes to try for a format, in order."""
        settings = self.recipe.quantize
        if settings.scheme != AUTO:
            return (settings.scheme,)
        known = {scheme.name for scheme in SCHEMES if format in scheme.formats}
        chosen = tuple(name for name in settings.candidates if name in known)
        if chosen or format != "onnx" or not self.recipe.trains_quantizers:
            return chosen or self.target.table(format).candidates
        return (self.trained_scheme.name, *self.target.table(format).candidates)

    @property
    def trained_scheme(self) -> Scheme:
        """The scheme that quantization-aware training is for: the recipe's, or by the target."""
        settings, onnx = self.recipe.quantize, self.target.onnx
        for name in (settings.scheme, *settings.candidates):
            if name in TRAINED:
                return find_scheme(name, "onnx")
        names = onnx.candidates if onnx is not None else ()
        return find_scheme(TRAINED[any("wi7" in name for name in names)], "onnx")

    @property
    def calibrated_only(self) -> bool:
        """True where some format has no candidate that does without calibration texts."""
        return any(
            all(find_scheme(name, format).calibrated for name in self.candidates(format))
            for format in self.formats
        )

    def describe(self) -> dict[str, Any]:
        """For programs."""
        return {
            "model": self.source.name,
            "target": self.target.model_dump(mode="json"),
            "recipe": self.recipe.model_dump(mode="json", by_alias=True),
            "data": self.data_name,
            "candidates": {format: self.candidates(format) for format in self.formats},
            "limits": asdict(self.limits),
            "validate_on": self.validate_on,
            "out": str(self.out),
        }

    def text(self) -> str:
        """For people: what would be done, a line a step."""
        data = self.data
        rows = "none: built without proof"
        if data is not None:
            sizes = f"{len(data.train)} train, {len(data.dev)} dev, {len(data.test)} test"
            rows = f"{data.name}: {sizes}"
        lines = [
            f"model    {self.source.name}",
            f"target   {self.target.name}: {self.target.description}",
            f"data     {rows}",
        ]
        lines += [
            f"{format:<8} the first that passes of: {', '.join(self.candidates(format))}"
            for format in self.formats
        ]
        if self.recipe.distill is not None:
            lines.append(f"distill  into {self.recipe.distill.student}")
        kept = self.recipe.prune.model_dump(exclude_defaults=True).items()
        if kept:
            lines.append(f"prune    keep {', '.join(f'{name} {size}' for name, size in kept)}")
        if self.recipe.recover is not None:
            lines.append(f"recover  {self.recipe.recover.epochs:g} epochs")
        if self.recipe.quantize_aware is not None:
            lines.append(f"quantize-aware training: {self.recipe.quantize_aware.epochs:g} epochs")
        sure = " with 95 % confidence" if self.limits.confident else ""
        limits = [f"drop <= {self.limits.max_drop:g}{sure}"]
        if self.limits.max_size_mb is not None:
            limits.append(f"size <= {self.limits.max_size_mb:g} MB")
        if self.limits.max_latency_ms is not None:
            limits.append(f"latency <= {self.limits.max_latency_ms:g} ms")
        lines.append(f"gates    {', '.join(limits)}")
        lines += [f"machine  {name}" for name in self.validate_on]
        return "\n".join([*lines, f"bundle   {self.out}"])

    def exporter(self, format: Format) -> "ExportOnnx | ExportLitert":
        """The stage that exports to a format."""
        if format == "onnx":
            from edgebert.pipeline.stages.export_onnx import ExportOnnx

            assert self.target.onnx is not None
            return ExportOnnx(self.target.onnx.max_opset, self.target.onnx.max_ir_version)
        from edgebert.pipeline.stages.export_litert import ExportLitert

        assert self.target.tflite is not None
        return ExportLitert(self.target.lengths, self.target.tflite.max_op_versions)

    def quantizer(self, format: Format, scheme: Scheme) -> "QuantizeOnnx | QuantizeLitert":
        """The stage that quantizes a format."""
        if format == "onnx":
            from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx

            assert self.target.onnx is not None
            return QuantizeOnnx(scheme, self.target.onnx.max_opset, self.target.onnx.max_ir_version)
        return self.litert_quantizer(scheme)

    def litert_quantizer(self, scheme: Scheme) -> "QuantizeLitert":
        """The stage that quantizes TFLite."""
        from edgebert.pipeline.stages.quantize_litert import QuantizeLitert

        assert self.target.tflite is not None
        return QuantizeLitert(scheme, self.target.tflite.max_op_versions)


def make_plan(request: BuildRequest) -> Plan:
    """Resolve what the user asks for.

    Raises:
        InputError: unknown name, malformed file, contradiction, or a model without data.
        MachineError: a hub model that is not at hand and cannot be fetched.
    """
    target = load_target(request.target)
    overrides = request.overrides if request.texts else (*request.overrides, "report.texts=false")
    recipe = load_recipe(request.recipe, overrides)
    for format in request.formats:
        if format not in target.formats:
            runs = f"it runs {', '.join(target.formats)}"
            raise InputError(
                f"{target.name} does not run {format}", runs, "choose another --format"
            )
    source = find_source(
        request.model, allow_pickle=request.allow_pickle, init_random=request.init_random
    )
    data = _data_name(request, source)
    limits = _limits(request, recipe, target)
    plan = Plan(
        source=source,
        target=target,
        recipe=recipe.model_copy(update={"gates": _resolved_gates(recipe, limits)}),
        data=None if data is None else load_data(data),
        data_name=data,
        formats=tuple(f for f in FORMATS if f in (request.formats or target.formats)),
        limits=limits,
        out=request.out or Path("artifacts") / f"{source.name}-{target.name}",
        command=request.command_line(),
        validate_on=request.validate_on,
    )
    check_plan(plan)
    return plan


def _resolved_gates(recipe: Recipe, limits: Limits) -> GateSettings:
    """The limits of the build as the manifest keeps them.

    Not the target's latency, which is a limit on some machines and on others not.
    """
    kept = {"max_drop": limits.max_drop, "max_size_mb": limits.max_size_mb}
    return recipe.gates.model_copy(update=kept)


def _limits(request: BuildRequest, recipe: Recipe, target: Target) -> Limits:
    """The command line's limits before the recipe's before the target's."""

    def first(*values: float | None) -> float | None:
        return next((value for value in values if value is not None), None)

    # The target's own latency limit says nothing where this machine is of another kind.
    target_ms = target.max_latency_ms if platform.machine() == target.arch else None
    max_drop = first(request.max_drop, recipe.gates.max_drop, target.max_drop)
    assert max_drop is not None
    return Limits(
        max_drop=max_drop,
        max_size_mb=first(request.max_size_mb, recipe.gates.max_size_mb, target.max_size_mb),
        max_latency_ms=first(request.max_latency_ms, recipe.gates.max_latency_ms, target_ms),
        confident=recipe.gates.confident,
    )


def _data_name(request: BuildRequest, source: Source) -> str | None:
    """What to evaluate on; None for a build without proof."""
    if not request.validate:
        return None
    if request.data is None and not source.data and not source.random_weights:
        raise InputError(
            f"{source.name} has no evaluation data",
            "",
            "give --data FILE or FOLDER (text and label), or --no-validate to build without proof",
        )
    return request.data or source.data or None
