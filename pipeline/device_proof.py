"""`build --validate-on`: the finished bundle on other machines, before it is called passed.

Where a machine differs too far, the build says where in the model that starts, and tries schemes
that compute alike everywhere: with weights in 7 bits (no saturation on old x86), with calibrated
ranges (no scale of its own for every text), without a scale a channel, with blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from edgebert.pipeline.artifact import Model
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.drift import Gate
from edgebert.pipeline.gates import Limits, judge
from edgebert.pipeline.machines import MachineDrift, judge_machines
from edgebert.pipeline.phone_result import PhoneResult
from edgebert.pipeline.planning import Plan
from edgebert.pipeline.runners import Runner, find_runner
from edgebert.pipeline.runners.adb import AdbRunner
from edgebert.pipeline.stage_runs import StageRuns
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.divergence import find_start
from edgebert.pipeline.stages.phones import measure_phone, measurements
from edgebert.pipeline.stages.reference import Reference, ReferenceLogits
from edgebert.pipeline.stages.validate_on import ValidateOn
from edgebert.targets import Format
from edgebert.targets.errors import EdgebertError, MachineError

OFFERS: dict[Format, tuple[str, ...]] = {
    "onnx": (
        "static_wi7c_ai8_smooth",
        "dynamic_wi7c_afp32_token",
        "weight_only_wi8b32",
    ),
    "tflite": ("static_wi8c_ai8", "dynamic_wi8c_hr_afp32", "weight_only_wi8c_afp32"),
}
WORST = 2  # texts that the start of a difference is looked for on


@dataclass(frozen=True)
class DeviceProof:
    """Validates a bundle on the machines that a plan names.

    Attributes:
        plan: of the build.
        runs: the build's stages and its cache.
        make: a model file of the build in another scheme.
    """

    plan: Plan
    runs: StageRuns
    make: Callable[[Format, str], Model]

    def __call__(self, found: BundleInputs, out: Path) -> Bundle:
        """Validate the bundle at `out` everywhere, and write it again with what was found.

        Raises:
            InputError: a machine answers for another bundle.
            MachineError: a machine cannot be reached, or lacks something.
        """
        bundle, machines, gates = Bundle.open(out), [], [*found.gates]
        phones: list[PhoneResult] = []
        for name in self.plan.validate_on:
            runner, held = find_runner(name), True
            for format in bundle.formats:
                apart, judged = self._prove(runner, bundle, format, found)
                if not all(gate.passed for gate in judge_machines(apart)):
                    held = False
                    apart = self._explain(runner, bundle, format, found, apart)
                machines.append(apart)
                gates += [*judged, *judge_machines(apart)]
            limited = self.plan.limits.max_latency_ms is not None
            if isinstance(runner, AdbRunner) and limited and held:  # else it is wrong, fast or not
                progress = self.runs.progress
                measured = measure_phone(bundle, runner, formats=bundle.formats, progress=progress)
                gates = phone_gates(gates, self.plan.limits, measured, bundle, runner)
                phones += measured
        proven = replace(found, gates=tuple(gates), machines=tuple(machines), phones=tuple(phones))
        return write_bundle(proven, out)

    def _prove(
        self, runner: Runner, bundle: Bundle, format: Format, found: BundleInputs
    ) -> tuple[MachineDrift, tuple[Gate, ...]]:
        """How far a machine differs from this one, and the gate of its drift there."""
        plan, settings = self.plan, self.plan.recipe.validate_
        assert plan.data is not None
        stage = ValidateOn(runner, settings.seed)
        scheme = bundle.info(format).scheme
        with self.runs.progress.stage(f"validate {format} {scheme} on {runner.name}"):
            drift, apart = stage(
                found.checkpoint,
                bundle,
                format,
                plan.data,
                self._reference(runner, found),
                self.runs.cache,
                self.runs.progress,
            )
        random = plan.source.random_weights
        gates = judge(plan.limits, format, drift, random_weights=random)
        return apart, tuple(_on(runner, format, gate) for gate in gates)

    def _reference(self, runner: Runner, found: BundleInputs) -> ReferenceLogits:
        """The checkpoint's logits: of all test rows, of a sample where an emulator runs them."""
        data, settings = self.plan.data, self.plan.recipe.validate_
        assert data is not None
        limit = settings.test_rows or None
        if runner.emulated:
            limit = min(settings.device_rows, limit or settings.device_rows)
        stage, checkpoint = Reference("test", limit, settings.seed), found.original
        assert checkpoint is not None
        folder = self.runs.run(
            f"reference test {limit}" if limit else "reference test",
            stage,
            [checkpoint.sha256, data.sha256],
            lambda out: stage(checkpoint, data, out),
        )
        return ReferenceLogits(folder, "test")

    def _explain(
        self,
        runner: Runner,
        bundle: Bundle,
        format: Format,
        found: BundleInputs,
        apart: MachineDrift,
    ) -> MachineDrift:
        """The same with where the difference starts, and a scheme that does not have it."""
        start = ""
        if format == "onnx":
            assert self.plan.data is not None
            texts = {one.text for one in apart.worst[:WORST]}
            rows = [row for row in self.plan.data.test if row.text in texts][:WORST]
            with self.runs.progress.stage(f"where {runner.name} parts"):
                start = find_start(runner, bundle, rows)
        offer = ""
        for name in OFFERS[format]:
            if name == bundle.info(format).scheme:
                continue
            try:
                model = self.make(format, name)
            except MachineError:
                raise
            except EdgebertError:
                continue  # a scheme that cannot be built here is no offer
            with TemporaryDirectory() as folder:
                other = write_bundle(replace(found, models=(model,)), Path(folder) / "bundle")
                tried, gates = self._prove(runner, other, format, found)
            if all(gate.passed for gate in (*gates, *judge_machines(tried))):
                offer = name
                break
        return apart.model_copy(update={"starts_at": start, "offer": offer})


def phone_gates(
    gates: Sequence[Gate],
    limits: Limits,
    phones: Sequence[PhoneResult],
    bundle: Bundle,
    runner: Runner,
) -> list[Gate]:
    """The gates of a build with a phone's latency in place of this machine's.

    Args:
        gates: so far.
        limits: with one of the latency.
        phones: what was measured of each format, in their order.
        bundle: that was measured.
        runner: the phone.
    """
    here = {f"latency ({format})" for format in bundle.formats}
    judged = [gate for gate in gates if gate.name not in here]
    for format, phone in zip(bundle.formats, phones, strict=True):
        (measured,) = measurements(phone, bundle, runner.name)
        found = judge(limits, format, latency_ms=measured.p50_ms)
        judged += [_on(runner, format, gate) for gate in found]
    return judged


def _on(runner: Runner, format: Format, gate: Gate) -> Gate:
    """A gate of a model file, named after the machine too."""
    old, new = f"({format})", f"({format} on {runner.name})"
    said = {"name": gate.name.replace(old, new), "message": gate.message.replace(old, new)}
    return gate.model_copy(update=said)
