"""Report: what a build found out, for people (HTML), programs (JSON) and CI (JUnit XML)."""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from jinja2 import Environment, FunctionLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict

from edgebert.pipeline.bundle import Manifest
from edgebert.pipeline.drift import DriftReport, Gate, Trial
from edgebert.pipeline.machines import MachineDrift
from edgebert.pipeline.processor import processor_flags
from edgebert.pipeline.runtimes.run import machine
from edgebert.pipeline.stages.measure import Measurement
from edgebert.targets import Format

# A file is called slower than fp32 below this ratio; runs of the same file differ by about as much.
NOISE = 0.95

if TYPE_CHECKING:
    from edgebert.pipeline.stages.bundle import BundleInputs

# Instructions that int8 matrix products run on, fastest first, as /proc/cpuinfo names them.
INT8_INSTRUCTIONS = ("amx_int8", "avx512_vnni", "avx_vnni", "avx512bw", "avx2", "i8mm", "asimddp")


class FileSize(BaseModel):
    """Size of a model file, in MB (1e6 bytes)."""

    model_config = ConfigDict(frozen=True)

    file: str
    scheme: str
    size_mb: float


class Report(BaseModel):
    """The whole of a build.

    Attributes:
        created: when, UTC.
        host, host_int8: the machine that built and validated, and what it computes int8 with: x86
            without VNNI can saturate where this one did not.
        manifest: what is in the bundle.
        checkpoint_mb: size of the fp32 checkpoint's weights.
        sizes: of the model files.
        gates, drift, trials, measurements, notes, machines: as the build found them.
        command: how to build it again.
    """

    model_config = ConfigDict(frozen=True)

    created: str
    host: str
    host_int8: str
    manifest: Manifest
    checkpoint_mb: float
    sizes: tuple[FileSize, ...]
    gates: tuple[Gate, ...]
    drift: dict[Format, DriftReport]
    trials: tuple[Trial, ...]
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]
    command: str
    machines: tuple[MachineDrift, ...] = ()


def build_report(inputs: "BundleInputs", manifest: Manifest) -> Report:
    """Put the report of a build together."""
    weights = inputs.checkpoint.path.glob("*.safetensors")
    return Report(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        host=f"{machine()}, {platform.system()}, Python {platform.python_version()}",
        host_int8=int8_instructions(),
        manifest=manifest,
        checkpoint_mb=sum(file.stat().st_size for file in weights) / 1e6,
        sizes=tuple(
            FileSize(file=m.file.name, scheme=m.info.scheme, size_mb=m.size_mb)
            for m in inputs.models
        ),
        gates=inputs.gates,
        drift=dict(inputs.drift),
        trials=inputs.trials,
        measurements=inputs.measurements,
        notes=(*inputs.notes, *_findings(inputs.measurements)),
        command=inputs.command,
        machines=inputs.machines,
    )


def write_report(report: Report, folder: Path) -> None:
    """Write report.json, report.html and junit.xml."""
    (folder / "report.json").write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(render_html(report), encoding="utf-8")
    (folder / "junit.xml").write_text(render_junit(report), encoding="utf-8")


def read_report(folder: Path) -> Report:
    """The report of a bundle."""
    return Report.model_validate_json((folder / "report.json").read_text(encoding="utf-8"))


def int8_instructions() -> str:
    """The fastest int8 instructions of this machine's processor, or `unknown`."""
    flags = processor_flags()
    if not flags:
        return "unknown"
    return next((name for name in INT8_INSTRUCTIONS if name in flags), "none of its own")


def render_html(report: Report) -> str:
    """The page: one file, no scripts, nothing loaded from elsewhere, every text escaped."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"visible": visible, "number": number, "mb": lambda x: f"{x:.2f} MB"}
    folder = resources.files("edgebert.pipeline") / "templates"
    environment.loader = FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    page = environment.get_template("report.html.j2")
    return page.render(
        r=report, m=report.manifest, edgebert=metadata.version("edgebert"), span=span
    )


def render_junit(report: Report) -> str:
    """One test case a gate, as CI systems show them."""
    name = f"edgebert {report.manifest.model} {report.manifest.target.name}"
    failures = sum(not gate.passed for gate in report.gates)
    counts = {"tests": str(len(report.gates)), "failures": str(failures), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": name, **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, "skipped": "0", **counts})
    suite.set("timestamp", report.created.removesuffix("+00:00"))
    for gate in report.gates:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": "edgebert.gates", "name": visible(gate.name), "time": "0"},
        )
        message = visible(gate.message)
        if gate.passed:
            ElementTree.SubElement(case, "system-out").text = message
        else:
            ElementTree.SubElement(
                case, "failure", {"message": message, "type": "gate"}
            ).text = message
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def visible(text: str, limit: int = 300) -> str:
    """A text as people can read it, cut; control characters, which XML lacks, as pictures."""
    pictures = {code: 0x2400 + code for code in range(32)} | {127: 0x2421}
    pictures |= {
        code: 0xFFFD for code in (*range(128, 160), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
    }
    shown = text.translate(pictures)
    return shown if len(shown) <= limit else f"{shown[:limit]}… ({len(text)} characters)"


def number(value: float | None, digits: int = 4) -> str:
    """A number in fixed notation, a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def span(report: DriftReport, limit: float) -> Mapping[str, Any]:
    """Where a plot of the drops begins and how wide it is: all intervals, zero and the limit."""
    ends = [0.0, limit, *(x for m in report.metrics for x in (m.drop, m.drop_low, m.drop_high))]
    margin = 0.08 * (max(ends) - min(ends) or 1.0)
    return {"low": min(ends) - margin, "width": max(ends) - min(ends) + 2 * margin}


def _findings(measurements: tuple[Measurement, ...]) -> tuple[str, ...]:
    """What a reader must not miss in the measurements."""
    return tuple(
        f"{one.file} is slower than the fp32 file on this machine "
        f"({one.p50_ms:.2f} ms against {one.fp32_p50_ms:.2f} ms)"
        for one in measurements
        if one.speedup is not None and one.speedup < NOISE
    )
