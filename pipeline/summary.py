"""A report in the few lines that a terminal shows."""

from pathlib import Path
from typing import Any

from edgebert.pipeline.drift import DriftReport, Gate, Trial
from edgebert.pipeline.machines import MachineDrift
from edgebert.pipeline.stages.measure import Measurement
from edgebert.pipeline.stages.report import Report


def summarize(report: Report, bundle: Path) -> str:
    """Verdict, a line or two for each model file, failed gates, and where to read more."""
    lines = [f"{bundle}  {_verdict(report.manifest.passed)}"]
    measured = {measurement.file: measurement for measurement in report.measurements}
    for size in report.sizes:
        lines.append(f"  {size.file:<13} {size.size_mb:.2f} MB  {size.scheme}")
        drift = report.drift.get("onnx" if size.file.endswith(".onnx") else "tflite")
        lines += [f"  {'':<13} {line}" for line in drift_lines(drift)] if drift else []
        if size.file in measured:
            lines.append(f"  {'':<13} {_speed(measured[size.file])}")
        lines += [f"  {'':<13} {line}" for line in _fp32_lines(report.trials, size.scheme)]
    lines += [f"  {one.format:<13} {one.text()}" for one in report.machines]
    lines += gate_lines(report.gates)
    return "\n".join([*lines, f"  {'report':<13} {bundle / 'report.html'}"])


def _fp32_lines(trials: tuple[Trial, ...], scheme: str) -> list[str]:
    """Which layers of the file that ships are in fp32; the first of many."""
    layers = next((t.fp32_layers for t in trials if t.kept and t.scheme == scheme), ())
    shown = ", ".join(layers[:4]) + (f" and {len(layers) - 4} more" if len(layers) > 4 else "")
    return [f"in fp32: {shown}"] if layers else []


def drift_lines(drift: DriftReport) -> list[str]:
    """Metric before and after with the interval of its drop; agreement."""
    metric = drift.metrics[0]
    lines = [
        f"{metric.name} {metric.reference:.4f} -> {metric.artifact:.4f} "
        f"on {drift.rows} {drift.split} rows "
        f"(drop {metric.drop:+.4f}, 95 % {metric.drop_low:+.4f} to {metric.drop_high:+.4f})"
    ]
    if drift.agreement is not None and drift.cosine_min is not None:
        lines.append(
            f"same label on {100 * drift.agreement:.2f} %, cosine of the logits "
            f"{drift.cosine_mean:.4f} mean, {drift.cosine_min:.4f} lowest ({drift.runtime})"
        )
    return [*lines, *(f"more than chance: {line}" for line in drift.losses)]


def changed_labels(machines: MachineDrift) -> list[str]:
    """The texts on which another machine says something else, a line each."""
    return [
        f"{one.text[:60]!r}: {one.here} here, {one.there} there"
        for one in machines.worst
        if one.here != one.there and machines.agreement is not None
    ]


def answer_text(answer: dict[str, Any]) -> str:
    """An answer of `predict` for people: label, score and text, with tabs between them."""
    if "tags" in answer:
        return " ".join(f"{tag['token']}/{tag['label']}" for tag in answer["tags"])
    found = answer.get("labels", answer.get("label", answer.get("value")))
    label = ",".join(found) if isinstance(found, list) else str(found)
    score = f"{answer['score']:.4f}" if "score" in answer else ""
    return f"{label}\t{score}\t{answer['text']}"


def gate_lines(gates: tuple[Gate, ...]) -> list[str]:
    """One line for each gate that failed, or that passed without being sure."""
    lines = [f"  FAILED {gate.message}" for gate in gates if not gate.passed]
    unsure = [gate for gate in gates if gate.passed and gate.verdict == "cannot tell"]
    return lines + [f"  UNSURE {gate.message}" for gate in unsure]


def _verdict(passed: bool | None) -> str:
    return {True: "passed", False: "FAILED", None: "built without proof"}[passed]


def _speed(measured: Measurement) -> str:
    ratio = f", {measured.speedup:.1f} x as fast as fp32" if measured.speedup else ""
    return (
        f"p50 {measured.p50_ms:.2f} ms at {measured.tokens} tokens on this machine{ratio}, "
        f"load {measured.load_ms:.0f} ms"
        + (f", {measured.memory_mb:.1f} MB of memory" if measured.memory_mb is not None else "")
    )
