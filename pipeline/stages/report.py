"""Report: what a build found out, for people (HTML), programs (JSON) and CI (JUnit XML)."""

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from edgebert.pipeline.bundle import Manifest
from edgebert.pipeline.drift import DriftReport, Gate, Trial
from edgebert.pipeline.layers import LayerReport
from edgebert.pipeline.machines import MachineDrift
from edgebert.pipeline.phone_result import PhoneResult
from edgebert.pipeline.processor import processor_flags
from edgebert.pipeline.recipe import Recipe
from edgebert.pipeline.runtimes.run import machine
from edgebert.pipeline.stages.measure import Measurement
from edgebert.targets import Format
from edgebert.targets.errors import InputError

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
        schema_version: of report.json.
        created: when, UTC.
        host, host_int8: the machine that built and validated, and what it computes int8 with: x86
            without VNNI can saturate where this one did not.
        manifest: what is in the bundle.
        checkpoint_mb: size of the fp32 checkpoint's weights.
        sizes: of the model files.
        gates, drift, trials, measurements, layers, notes, machines: as the build found them.
        times_s: seconds that each stage took.
        command: how to build it again.
        phones: what the app found out on each, also after the build.
    """

    model_config = ConfigDict(frozen=True)

    schema_version: Literal[2] = 2
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
    layers: tuple[LayerReport, ...] = ()
    times_s: dict[str, float] = {}
    notes: tuple[str, ...]
    command: str
    machines: tuple[MachineDrift, ...] = ()
    phones: tuple[PhoneResult, ...] = ()

    @property
    def has_texts(self) -> bool:
        """Whether texts of the data may be in it."""
        return Recipe.model_validate({"name": "", **self.manifest.recipe}).report.texts

    def without_texts(self) -> "Report":
        """The same without a text of the user's."""
        drift = {format: one.without_texts() for format, one in self.drift.items()}
        trials = tuple(
            trial.model_copy(update={"drift": trial.drift and trial.drift.without_texts()})
            for trial in self.trials
        )
        machines = tuple(one.without_texts() for one in self.machines)
        return self.model_copy(update={"drift": drift, "trials": trials, "machines": machines})


def build_report(inputs: "BundleInputs", manifest: Manifest) -> Report:
    """Put the report of a build together; without texts where the recipe says so."""
    weights = inputs.checkpoint.path.glob("*.safetensors")
    report = Report(
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
        layers=inputs.layers,
        times_s=dict(inputs.times_s),
        notes=(*inputs.notes, *_findings(inputs.measurements)),
        command=inputs.command,
        machines=inputs.machines,
        phones=inputs.phones,
    )
    return report if report.has_texts else report.without_texts()


def write_report(report: Report, folder: Path) -> None:
    """Write report.json, report.html and junit.xml."""
    from edgebert.pipeline.stages.junit import render_junit
    from edgebert.pipeline.stages.page import render_html

    (folder / "report.json").write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(render_html(report), encoding="utf-8")
    (folder / "junit.xml").write_text(render_junit(report), encoding="utf-8")


def read_report(folder: Path) -> Report:
    """The report of a bundle.

    Raises:
        InputError: there is none, or another version of edgebert wrote it.
    """
    file = folder / "report.json"
    try:
        return Report.model_validate_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"no report: {error.strerror}", str(file), "copy the whole bundle"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{field or 'not JSON'}: {first['msg']}", str(file), "build the bundle again"
        ) from error


def int8_instructions() -> str:
    """The fastest int8 instructions of this machine's processor, or `unknown`."""
    flags = processor_flags()
    if not flags:
        return "unknown"
    return next((name for name in INT8_INSTRUCTIONS if name in flags), "none of its own")


def _findings(measurements: tuple[Measurement, ...]) -> tuple[str, ...]:
    """What a reader must not miss in the measurements."""
    return tuple(
        f"{one.file} is slower than the fp32 file on this machine "
        f"({one.p50_ms:.2f} ms against {one.fp32_p50_ms:.2f} ms)"
        for one in measurements
        if one.speedup is not None and one.speedup < NOISE
    )
