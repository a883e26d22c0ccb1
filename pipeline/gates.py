"""Gates: the limits of a build and whether they hold."""

import math
from dataclasses import dataclass, replace

from edgebert.pipeline.decision import decide
from edgebert.pipeline.drift import DriftReport, Gate
from edgebert.targets import Format
from edgebert.targets.errors import InputError

LOOSE = 0.2  # a larger limit may be meant in percent


@dataclass(frozen=True)
class Limits:
    """What a build may cost.

    Attributes:
        max_drop: largest drop of the primary metric, a fraction (0.01 is one point).
        max_size_mb: largest model file in MB (1e6 bytes); None: no limit.
        max_latency_ms: longest median latency in ms; None: no limit.
        confident: the drift gate passes only where the drop is below its limit with 95 %
            confidence; otherwise it passes where the drop that was measured is.

    Raises:
        InputError: a drop that is no fraction (1 for one percent), or another limit not above 0.
    """

    max_drop: float = 0.01
    max_size_mb: float | None = None
    max_latency_ms: float | None = None
    confident: bool = False

    @property
    def measured(self) -> "Limits":
        """The same without a demand for confidence, which the few rows of a choice cannot meet."""
        return replace(self, confident=False)

    def __post_init__(self) -> None:
        if not 0 <= self.max_drop < 1:
            cure = "for one point write 0.01"
            if 1 <= self.max_drop <= 100:
                cure = f"for {self.max_drop:g} points write {self.max_drop / 100:g}"
            raise InputError(
                f"max_drop is {self.max_drop:g}, not a fraction of 0 to 1", "setting max_drop", cure
            )
        for name in ("max_size_mb", "max_latency_ms"):
            limit = getattr(self, name)
            if limit is not None and not (limit > 0 and math.isfinite(limit)):
                raise InputError(f"{name} is {limit:g}, not above 0", f"setting {name}")


def judge(
    limits: Limits,
    format: Format,
    drift: DriftReport | None = None,
    size_mb: float | None = None,
    latency_ms: float | None = None,
    random_weights: bool = False,
) -> tuple[Gate, ...]:
    """Judge one model file; a gate for each value that is given and limited.

    Args:
        limits: what is allowed.
        format: of the file; in the gates' names.
        drift: its drift; None where it was not measured.
        size_mb: its size in MB.
        latency_ms: its median latency in ms, measured on the target.
        random_weights: the checkpoint was never trained, so its accuracy means nothing.
    """
    gates = [] if drift is None else [_drift_gate(limits, format, drift, random_weights)]
    for name, value, limit, unit in (
        ("size", size_mb, limits.max_size_mb, "MB"),
        ("latency", latency_ms, limits.max_latency_ms, "ms"),
    ):
        if value is not None and limit is not None:
            passed = value <= limit
            message = f"{name} ({format}): {value:.4g} {unit}, limit {limit:g} {unit}"
            gates.append(_gate(f"{name} ({format})", value, limit, unit, passed, message))
    return tuple(gates)


def _drift_gate(limits: Limits, format: Format, drift: DriftReport, random: bool) -> Gate:
    metric, limit = drift.metrics[0], limits.max_drop
    name = f"drift ({format})"
    decision = decide(metric, drift.rows, limit)
    parts = [
        f"{name}: {metric.name} {metric.reference:.4f} -> {metric.artifact:.4f}, drop "
        f"{metric.drop:.4f} (95 % interval {metric.drop_low:.4f} to {metric.drop_high:.4f}, "
        f"{drift.rows} {drift.split} rows), limit {limit:g}",
        decision.text,
    ]
    if limit > LOOSE:
        points = 100 * limit
        parts.append(f"a limit of {points:g} points: for {limit:g} points write {limit / 100:g}")
    if drift.nonfinite_rows:
        parts.append(f"{drift.nonfinite_rows} rows have NaN or infinite logits")
    if random:
        parts.append("the weights are random, so that accuracy means nothing")
    # A drop of exactly the limit passes, whatever the last bit of the subtraction says.
    within = decision.verdict == "below" if limits.confident else metric.drop <= limit + 1e-12
    if limits.confident and not within:
        parts.append("the recipe demands 95 % confidence")
    gate = _gate(
        name, metric.drop, limit, metric.name, within and not drift.nonfinite_rows, "; ".join(parts)
    )
    return gate.model_copy(
        update={"verdict": decision.verdict, "rows_needed": decision.rows_needed}
    )


def _gate(name: str, value: float, limit: float, unit: str, passed: bool, message: str) -> Gate:
    verdict = "passed" if passed else "FAILED"
    return Gate(
        name=name,
        value=value,
        limit=limit,
        unit=unit,
        passed=passed,
        message=f"{message}: {verdict}",
    )
