"""The choice of a scheme: tried in order on the dev rows, with layers in fp32 where asked for."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.build_result import Attempt
from edgebert.pipeline.drift import LayerSensitivity, Trial
from edgebert.pipeline.gates import judge
from edgebert.pipeline.recipe import AUTO
from edgebert.pipeline.runtime_limits import check_runtime
from edgebert.pipeline.schemes import SchemeError, find_scheme, mixed_name
from edgebert.targets import Format
from edgebert.targets.errors import EdgebertError, InputError, MachineError

if TYPE_CHECKING:
    from edgebert.pipeline.building import Build


@dataclass(frozen=True)
class SchemeChoice:
    """Choose how one format is quantized.

    Attributes:
        build: whose stages do the work.
        checkpoint: the model.
        format: of the file.
        exported: the fp32 file.
        calibration: rows of train texts for the calibrated schemes.
    """

    build: "Build"
    checkpoint: Checkpoint
    format: Format
    exported: Model
    calibration: Sequence[TokenRow]

    def __call__(self) -> tuple[list[Trial], Model]:
        """Try schemes in their order; the first whose drift on the dev rows passes is kept.

        A scheme that drops too much is tried again with its costliest layers in fp32 before the
        next one, where the recipe says so. Where none passes the one that drops least is kept, and
        the gate on the test rows has the last word.

        Raises:
            InputError: none of the schemes could be built, or no layer has a name that was given.
        """
        names = self.build.plan.candidates(self.format)
        layers = self._named_layers()
        attempts: list[Attempt] = []
        for name in names:
            attempts.append(self._attempt(name, layers))
            if not attempts[-1].passed:
                attempts += self._mixed(name, attempts[-1])
            if attempts[-1].passed and not self.build.plan.recipe.quantize.exhaustive:
                break
        built = [attempt for attempt in attempts if attempt.model is not None]
        if not built:
            raise InputError(
                f"no scheme could be built for {self.format}: {attempts[0].trial.failure}",
                f"tried: {', '.join(names)}",
                "choose one with --set quantize.scheme=NAME",
            )
        least = min(built, key=lambda attempt: attempt.drop)
        kept = next((attempt for attempt in built if attempt.passed), least)
        if not kept.passed:
            self.build.notes.append(
                f"no scheme that was tried for {self.format} holds the limits on the dev rows: "
                f"{kept.trial.scheme}, which drops least, is in the bundle"
            )
        assert kept.model is not None
        trials = [
            attempt.trial.model_copy(update={"kept": attempt is kept}) for attempt in attempts
        ]
        return trials, kept.model

    def _attempt(self, name: str, layers: tuple[str, ...] = ()) -> Attempt:
        """Quantize and measure on the dev rows; a scheme that cannot be built is no error."""
        build = self.build
        label = mixed_name(name) if layers and name != "fp32" else name
        try:
            model = self._quantize(name, layers)
            check_runtime(model.info, build.plan.target)
        except MachineError:
            raise
        except EdgebertError as error:
            failure = f"{error.what} ({error.where})" if error.where else error.what
            return Attempt(None, Trial(format=self.format, scheme=label, failure=failure))
        drift = build.drift(self.checkpoint, model, "dev") if build.plan.data is not None else None
        gates = judge(build.plan.limits.measured, self.format, drift, model.size_mb)
        trial = Trial(
            format=self.format,
            scheme=label,
            size_mb=model.size_mb,
            latency_ratio=build.measure(model, self.exported).speedup,
            drift=drift,
            fp32_layers=layers if label != name else (),
        )
        return Attempt(model, trial, all(gate.passed for gate in gates))

    def _quantize(self, name: str, layers: tuple[str, ...]) -> Model:
        return self.build.quantize(
            self.checkpoint, self.format, name, self.exported, self.calibration, layers
        )

    def _named_layers(self) -> tuple[str, ...]:
        """The layers that the recipe names."""
        patterns = self.build.plan.recipe.quantize.fp32_layers
        if patterns == AUTO or not patterns:
            return ()
        scheme = find_scheme(self.build.plan.candidates(self.format)[0], self.format)
        stage = self.build.plan.quantizer(self.format, scheme)
        layers = stage.layers(self.checkpoint, self.exported)
        return match_layers(patterns, [layer.name for layer in layers])

    def _mixed(self, name: str, plain: Attempt) -> list[Attempt]:
        """The scheme with as few of its costliest layers in fp32 as hold the limit of the drift.

        Nothing, where that is not asked for or cannot help.
        """
        plan = self.build.plan
        settings, data = plan.recipe.quantize, plan.data
        if settings.fp32_layers != AUTO or plain.model is None or data is None:
            return []
        scheme = find_scheme(name, self.format)
        if scheme.tool == "none" or not plan.quantizer(self.format, scheme).mixable:
            return []
        if self._holds(plain.model):  # it is the size, and fp32 is larger
            return []
        try:
            table = self._sensitivity(name)
            order = [one.layer for one in table]
            most = max(1, int(settings.fp32_share * len(order)))
            count = fewest(most, lambda k: self._holds(self._quantize(name, tuple(order[:k]))))
        except SchemeError as error:
            failed = Trial(format=self.format, scheme=mixed_name(name), failure=error.what)
            return [Attempt(None, failed)]
        attempt = self._attempt(name, tuple(order[: count or most]))
        trial, failure = attempt.trial, ""
        gates = judge(plan.limits.measured, self.format, trial.drift, trial.size_mb)
        if not attempt.passed:
            why = "; ".join(gate.message for gate in gates if not gate.passed)
            failure = f"with the {count or most} costliest of {len(order)} layers in fp32: {why}"
        trial = trial.model_copy(update={"sensitivity": table, "failure": failure})
        return [Attempt(attempt.model, trial, attempt.passed)]

    def _holds(self, model: Model) -> bool:
        """True where the drift on the dev rows is within its limit."""
        drift = self.build.drift(self.checkpoint, model, "dev")
        return all(
            gate.passed for gate in judge(self.build.plan.limits.measured, self.format, drift)
        )

    def _sensitivity(self, name: str) -> tuple[LayerSensitivity, ...]:
        """What each layer costs in a scheme, costliest first."""
        from edgebert.pipeline.stages.sensitivity import Sensitivity, read_sensitivity

        plan, scheme = self.build.plan, find_scheme(name, self.format)
        data = plan.data
        assert data is not None
        rows = tuple(self.calibration) if scheme.calibrated else ()
        settings = plan.recipe.quantize
        quantizer = plan.quantizer(self.format, scheme)
        stage = Sensitivity(quantizer, settings.sensitivity_rows, plan.recipe.validate_.seed)

        def make(out: Path) -> object:
            return stage(self.checkpoint, self.exported, rows, data, out)

        inputs = [self.checkpoint.sha256, self.exported.sha256, data.sha256, repr(rows)]
        folder = self.build.stage(f"sensitivity {self.format} {name}", stage, inputs, make)
        return read_sensitivity(folder)


def fewest(most: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest number from 1 to `most` that holds, by bisection; None where `most` does not.

    The drop of a metric need not fall with every layer: then it is one that holds, where one fewer
    does not.
    """
    if not holds(most):
        return None
    low, high = 0, most  # 0 is known to fail
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def match_layers(patterns: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The layers whose name one of the patterns matches, in the order of `names`.

    Raises:
        InputError: a pattern matches none; with the nearest names.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.0)
            raise InputError(
                f"no layer is called '{pattern}'",
                f"quantize.fp32_layers; nearest: {', '.join(near)}",
                "give a layer's whole name, or a pattern such as *.output.dense",
            )
    return tuple(name for name in names if any(fnmatchcase(name, p) for p in patterns))
