"""One build, readable in one place: load, compress, export, quantize, validate, judge, bundle."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgebert.calibration import Split
from edgebert.calibration.labels import match_labels
from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.build_result import BuildResult
from edgebert.pipeline.bundle import SourceEntry, copy_bundle
from edgebert.pipeline.cache import Cache
from edgebert.pipeline.compression import compress
from edgebert.pipeline.drift import DriftReport, Gate, Trial
from edgebert.pipeline.gates import judge
from edgebert.pipeline.layer_runs import run_layers
from edgebert.pipeline.planning import Plan
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.scheme_choice import SchemeChoice
from edgebert.pipeline.schemes import MIXED, find_scheme
from edgebert.pipeline.stage_runs import StageRuns
from edgebert.pipeline.stages.measure import Measurement
from edgebert.pipeline.stages.report import read_report
from edgebert.targets import Format
from edgebert.targets.errors import InputError

if TYPE_CHECKING:
    from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
    from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx


def run_build(plan: Plan, cache: Cache, progress: Progress) -> BuildResult:
    """Run a plan and leave the bundle at `plan.out`.

    Raises:
        InputError: the input is wrong.
        MachineError: the machine lacks something.
    """
    key = cache.key(plan.settings, plan.source.sha256, plan.data.sha256 if plan.data else "")
    if cache.has(key):
        progress.note(f"{'build':<44} {'cached':>9}")
    made = cache.run(key, lambda folder: Build(plan, cache, progress).run(folder / "bundle"))
    bundle = copy_bundle(made / "bundle", plan.out)
    return BuildResult(bundle, read_report(bundle.path))


class Build:
    """The stages of one build, each through the cache."""

    def __init__(self, plan: Plan, cache: Cache, progress: Progress) -> None:
        self.plan, self.progress = plan, progress
        self.runs = StageRuns(cache, progress)
        self.stage = self.runs.run
        self.notes = [*plan.notes]
        self.measured: dict[Path, Measurement] = {}

    def run(self, out: Path) -> None:
        """Run every stage and write the bundle to `out`."""
        from edgebert.pipeline.device_proof import DeviceProof
        from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
        from edgebert.pipeline.stages.golden import Golden
        from edgebert.pipeline.stages.load import count_parameters

        plan = self.plan
        self.original = self.load()
        checkpoint, notes = compress(self.original, plan, self.runs)
        self.notes += notes
        calibration = self.calibration(checkpoint)
        trials: list[Trial] = []
        models: dict[Format, Model] = {}
        drift: dict[Format, DriftReport] = {}
        gates: list[Gate] = []
        layers, measurements = [], []
        for format in plan.formats:
            exported = self.export(checkpoint, format)
            choice = SchemeChoice(self, checkpoint, format, exported, calibration)
            tried, model = choice()
            trials += tried
            models[format] = model
            if checkpoint.shares_layers and not {"Loop", "WHILE"} & set(model.info.operators):
                self.notes.append(
                    f"{model.info.scheme} in {format} has the shared layer written out: it is in "
                    "the file once, and in memory once a depth"
                )
            if plan.data is not None:
                drift[format] = self.drift(checkpoint, model, "test")
                readable = self.written_out(checkpoint, model, tried, exported, calibration)
                layers.append(run_layers(plan.data, self.runs, checkpoint, exported, readable))
            measurement = self.measure(model, exported)
            measurements.append(measurement)
            gates += judge(
                plan.limits,
                format,
                drift.get(format),
                model.size_mb,
                measurement.p50_ms,
                random_weights=plan.source.random_weights,
            )
        stage = Golden() if plan.recipe.report.texts else Golden(test_texts=0)
        inputs = [checkpoint.sha256, *(model.sha256 for model in models.values())]
        golden = self.stage(
            "golden texts",
            stage,
            [*inputs, plan.data.sha256 if plan.data else ""],
            lambda folder: stage(checkpoint, models, plan.data.test if plan.data else (), folder),
        )
        with self.progress.stage("bundle"):
            found = BundleInputs(
                checkpoint=checkpoint,
                source=SourceEntry(
                    model=plan.source.model,
                    allow_pickle=plan.source.allow_pickle,
                    checkpoint_sha256=self.original.sha256,
                    data=plan.data_name,
                ),
                target=plan.target,
                models=tuple(models.values()),
                golden=golden / "golden.jsonl",
                parameters=count_parameters(checkpoint),
                recipe=plan.recipe.model_dump(mode="json", by_alias=True),
                stages=tuple(self.runs.entries),
                drift=drift,
                gates=tuple(gates),
                trials=tuple(trials),
                measurements=tuple(measurements),
                layers=tuple(layers),
                times_s=dict(self.progress.times_s),
                attributions=plan.attributions,
                command=plan.command,
                notes=tuple(self.notes),
                random_weights=plan.source.random_weights,
                original=self.original,
            )
            write_bundle(found, out)
        if plan.validate_on:
            DeviceProof(
                plan,
                self.runs,
                lambda format, name: self.quantize(
                    checkpoint, format, name, self.export(checkpoint, format), calibration
                ),
            )(found, out)

    def load(self) -> Checkpoint:
        """The checkpoint, checked, in the form that every stage reads."""
        from edgebert.pipeline.stages.load import Load

        stage = Load(self.plan.source, self.plan.random_labels)
        folder = self.stage("load", stage, [self.plan.source.sha256], stage)
        self.notes += stage.notes(folder)
        checkpoint = stage.result(folder)
        if self.plan.data is not None:  # what is wrong with a label is better said now than later
            for rows in (self.plan.data.dev, self.plan.data.test):
                match_labels(rows, checkpoint.labels, checkpoint.task)
        return checkpoint

    def calibration(self, checkpoint: Checkpoint) -> tuple[TokenRow, ...]:
        """Rows for the calibrated schemes; none where there are none and other schemes can do."""
        from edgebert.pipeline.stages.calibrate import calibration_notes, calibration_rows

        plan = self.plan
        if plan.data is None:
            return ()
        try:
            settings, length = plan.recipe.calibration, max(plan.target.lengths)
            rows = calibration_rows(checkpoint, plan.data, settings, length)
            self.notes += calibration_notes(checkpoint, plan.data, rows)
            return rows
        except InputError as error:
            if plan.calibrated_only:
                raise
            self.notes.append(f"no calibrated scheme could be tried: {error.what}")
            return ()

    def export(self, checkpoint: Checkpoint, format: Format) -> Model:
        """The fp32 model file."""
        stage = self.plan.exporter(format)
        return Model(
            self.stage(
                f"export {format}", stage, [checkpoint.sha256], lambda out: stage(checkpoint, out)
            )
        )

    def measure(self, model: Model, exported: Model) -> Measurement:
        """Latency on this machine, beside the fp32 file; never from an earlier build."""
        from edgebert.pipeline.stages.measure import measure

        if model.file not in self.measured:
            name = f"measure {model.info.format} {model.info.scheme}"
            with self.progress.stage(name):
                self.measured[model.file] = measure(
                    model.file,
                    fp32_file=None if model.file == exported.file else exported.file,
                    tokens=self.plan.target.lengths[0],
                    threads=min(self.plan.target.threads, os.cpu_count() or 1),
                    runs=self.plan.recipe.measure.runs,
                    warmups=self.plan.recipe.measure.warmups,
                )
        return self.measured[model.file]

    def quantize(
        self,
        checkpoint: Checkpoint,
        format: Format,
        name: str,
        exported: Model,
        calibration: Sequence[TokenRow],
        fp32_layers: tuple[str, ...] = (),
    ) -> Model:
        """The model file in one scheme, some of its layers in fp32."""
        scheme = find_scheme(name, format)
        if scheme.tool == "none":
            return exported
        stage = replace(self.plan.quantizer(format, scheme), fp32_layers=fp32_layers)
        return self._quantized(
            f"quantize {format} {name}" + (f", {len(fp32_layers)} in fp32" if fp32_layers else ""),
            stage,
            checkpoint,
            exported,
            calibration,
        )

    def written_out(
        self,
        checkpoint: Checkpoint,
        model: Model,
        trials: Sequence[Trial],
        exported: Model,
        calibration: Sequence[TokenRow],
    ) -> Model:
        """The model file with every depth written out: inside a WHILE nothing can be read."""
        if "WHILE" not in model.info.operators:
            return model
        kept = next(trial for trial in trials if trial.kept)
        scheme = find_scheme(kept.scheme.removesuffix(MIXED), "tflite")
        stage = self.plan.litert_quantizer(scheme)
        stage = replace(stage, fp32_layers=kept.fp32_layers, rolled=False)
        name = f"write {kept.scheme} out"
        return self._quantized(name, stage, checkpoint, exported, calibration)

    def _quantized(
        self,
        name: str,
        stage: "QuantizeOnnx | QuantizeLitert",
        checkpoint: Checkpoint,
        exported: Model,
        calibration: Sequence[TokenRow],
    ) -> Model:
        rows = tuple(calibration) if stage.scheme.uses_texts else ()
        inputs = [checkpoint.sha256, exported.sha256, repr(rows)]
        return Model(
            self.stage(name, stage, inputs, lambda out: stage(checkpoint, exported, rows, out))
        )

    def drift(self, checkpoint: Checkpoint, model: Model, split: Split) -> DriftReport:
        """The drift of a model file on a split, against the fp32 checkpoint as it was loaded."""
        from edgebert.pipeline.stages.reference import Reference, ReferenceLogits
        from edgebert.pipeline.stages.validate import Validate

        data = self.plan.data
        assert data is not None
        settings = self.plan.recipe.validate_
        limit = settings.dev_rows if split == "dev" else settings.test_rows
        compute = Reference(split, limit or None, settings.seed)
        inputs = [self.original.sha256, data.sha256]
        folder = self.stage(
            f"reference {split}", compute, inputs, lambda out: compute(self.original, data, out)
        )
        reference = ReferenceLogits(folder, split)
        stage = Validate(seed=settings.seed)

        def measure(out: Path) -> None:
            report = stage(checkpoint, model, data, reference)
            (out / "drift.json").write_text(report.model_dump_json(), encoding="utf-8")

        name = f"validate {model.info.format} {model.info.scheme} on {split}"
        folder = self.stage(name, stage, [*inputs, repr(compute), model.sha256], measure)
        return DriftReport.model_validate_json((folder / "drift.json").read_text(encoding="utf-8"))
