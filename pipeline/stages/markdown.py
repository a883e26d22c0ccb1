"""A report as Markdown, for a comment on a pull request or a job's summary page."""

from edgebert.pipeline.drift import Gate
from edgebert.pipeline.stages.page import visible
from edgebert.pipeline.stages.report import Report

VERDICTS = {True: "✅ passed", False: "❌ failed", None: "⚠️ built without proof"}
SURE = {
    "below": "below the limit with 95 % confidence",
    "above": "above the limit with 95 % confidence",
    "cannot tell": "too few rows to tell",
}


def render_markdown(report: Report) -> str:
    """Verdict, a table of the gates and one of the files; no text of the data is in it."""
    manifest = report.manifest
    lines = [
        f"### {_cell(manifest.model)} for {manifest.target.name}: {VERDICTS[manifest.passed]}",
        "",
    ]
    if manifest.random_weights:
        lines += ["The weights are random: sizes and speeds are real, accuracy means nothing.", ""]
    if report.gates:
        lines += ["| gate | value | limit | | |", "| --- | ---: | ---: | --- | --- |"]
        lines += [_gate_line(gate) for gate in report.gates]
        lines.append("")
    lines += [
        "| file | scheme | size | latency | metric | fp32 | artifact | drop (95 %) | same label |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    latencies = {one.file: f"{one.p50_ms:.2f} ms" for one in report.measurements}
    for format, model in manifest.models.items():
        size = next((one.size_mb for one in report.sizes if one.file == model.file), 0.0)
        cells = [model.file, model.scheme, f"{size:.2f} MB", latencies.get(model.file, "")]
        drift = report.drift.get(format)
        if drift is not None:
            metric = drift.metrics[0]
            cells += [
                metric.name,
                f"{metric.reference:.4f}",
                f"{metric.artifact:.4f}",
                f"{metric.drop:+.4f} ({metric.drop_low:+.4f} to {metric.drop_high:+.4f})",
                "" if drift.agreement is None else f"{100 * drift.agreement:.2f} %",
            ]
        lines.append(f"| {' | '.join([*cells, *[''] * (9 - len(cells))])} |")
    runs = [run for phone in report.phones for run in phone.runs]
    if runs:
        lines += ["", "**Measured on phones:**", ""]
        lines += [
            f"- {_cell(run.file)}: p50 {run.p50_ms:.2f} ms on {_cell(run.machine)}, "
            f"threads {run.threads}, {run.tokens} tokens"
            for run in runs
        ]
    for format, drift in report.drift.items():
        if drift.losses:
            lines += ["", f"**{format}, more than chance explains:**", ""]
            lines += [f"- {_cell(line, limit=300)}" for line in drift.losses]
    return "\n".join([*lines, ""])


def _gate_line(gate: Gate) -> str:
    passed = "✅" if gate.passed else "❌"
    sure = SURE.get(gate.verdict or "", "")
    if gate.rows_needed:
        sure += f"; about {gate.rows_needed:,} would"
    digits = ".4f" if gate.verdict else ".4g"
    unit = "" if gate.verdict else f" {gate.unit}"
    value = f"{gate.value:{digits}}{unit} | {gate.limit:g}{unit}"
    return f"| {_cell(gate.name)} | {value} | {passed} | {sure} |"


def _cell(text: str, limit: int = 80) -> str:
    """A text that ends no cell and starts no markup."""
    shown = visible(text, limit)
    for character in "\\`*_{}[]<>|#":
        shown = shown.replace(character, f"\\{character}")
    return shown
