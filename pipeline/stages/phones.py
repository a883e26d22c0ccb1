"""Phones: measured through the demo app, or measured there by hand and imported; in the report."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from edgebert.pipeline.bundle import MANIFEST, Bundle, describe_file
from edgebert.pipeline.folders import replace_files
from edgebert.pipeline.phone_result import PhoneResult, Run
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.runners import Job
from edgebert.pipeline.runners.adb import AdbRunner
from edgebert.pipeline.stages.measure import Measurement
from edgebert.pipeline.stages.report import read_report, write_report
from edgebert.targets import Format
from edgebert.targets.errors import InputError, MachineError

RUNS, WARMUPS = 1024, 50  # MLPerf Inference's rule for a single stream; the app adds its 60 s
MOST_BYTES = 1 << 24  # a result has a few kilobytes
STEP = 20  # percent between two lines of progress


def measure_phone(
    bundle: Bundle,
    runner: AdbRunner,
    threads: int | None = None,
    runs: int = RUNS,
    formats: Sequence[Format] = (),
    progress: Progress | None = None,
) -> tuple[PhoneResult, ...]:
    """Measure a bundle on a phone, its golden texts first.

    Args:
        bundle: what is measured.
        runner: the phone.
        threads: of an inference; None: the target's.
        runs: inferences, and never fewer than the rule's.
        formats: the model files; empty: the first that the app can run.
        progress: told how far it is.

    Raises:
        InputError: as the runner.
        MachineError: no phone, or a result that may not be quoted as one's latency.
    """
    target, progress = bundle.manifest.target, progress or Progress()
    results = []
    for format in formats or (None,):
        job = Job(
            "measure",
            bundle.path,
            format,
            threads=threads or target.threads,
            tokens=target.lengths[0],
            runs=max(runs, RUNS),
            warmups=WARMUPS,
        )
        with progress.stage(f"measure {format or 'the model'} on {runner.name}"):
            result = replace(runner, told=_tell(progress, runner.name)).result(job)
        if fault := _fault(result, bundle):
            what, cure = fault
            raise MachineError(what, f"{runner.name}, {_model(result)}", cure)
        results.append(result)
        runner = replace(runner, apk=None)  # it is installed
    return tuple(results)


def read_result(file: Path, bundle: Bundle) -> PhoneResult:
    """A result that was shared from the app, held to the bundle that it is said to be of.

    Args:
        file: the JSON file.
        bundle: what was measured.

    Raises:
        InputError: no such file, another form, not of a phone, of another bundle, or marked as not
            to be quoted.
    """
    cure = "share it again from the app's list of results"
    try:
        if not file.is_file():
            raise InputError("no such file", str(file), cure)
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", str(file)) from error
    if len(data) > MOST_BYTES:
        raise InputError("too large for a measurement", str(file), cure)
    try:
        result = PhoneResult.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "not JSON"
        raise InputError(f"{where}: {first['msg']}", str(file), cure) from error
    if fault := _fault(result, bundle):
        raise InputError(fault[0], str(file), fault[1])
    return result


def measurements(result: PhoneResult, bundle: Bundle, runner: str) -> tuple[Measurement, ...]:
    """What a phone's result says of the bundle's files, as a measurement made here says it.

    Args:
        result: of the app.
        bundle: that was measured.
        runner: `adb`, or `import` for one that was shared by hand.
    """
    golden = result.golden
    return tuple(
        Measurement(
            **run.model_dump(include=set(Measurement.model_fields)),
            runner=runner,
            golden_rows=golden.rows if golden else None,
            golden_max_abs=golden.max_abs if golden else None,
        )
        for run in own_runs(result, bundle)
    )


def own_runs(result: PhoneResult, bundle: Bundle) -> tuple[Run, ...]:
    """The runs of files of the bundle, without that of the fp32 file beside them."""
    files = bundle.manifest.files
    sums = {model.file: files[model.file].sha256 for model in bundle.manifest.models.values()}
    return tuple(run for run in result.runs if sums.get(run.file) == run.file_sha256)


def add_to_report(bundle: Bundle, results: Sequence[PhoneResult]) -> None:
    """Add results to the bundle's report; one that is there already is left as it is.

    Raises:
        InputError: no report, or it cannot be written.
        MachineError: the disk is full.
    """
    report = read_report(bundle.path)
    new = tuple(result for result in results if result not in report.phones)
    report = report.model_copy(update={"phones": report.phones + new})
    with replace_files(bundle.path, "make the folder writable") as folder:
        write_report(report, folder)


def _fault(result: PhoneResult, bundle: Bundle) -> tuple[str, str] | None:
    """Why a result is no measurement of this bundle on a phone, and what to do; None: it is one."""
    if result.error is not None:
        return f"the run failed: {result.error}", "measure again"
    if result.kind != "measure":
        return f"a result of {result.kind}, not of a measurement", "measure with the app"
    if result.bundle != describe_file(bundle.path / MANIFEST).sha256:
        of = f"{result.model} for {result.target}, manifest {str(result.bundle)[:12]}"
        return f"the result of another bundle ({of})", "name the bundle that was on the phone"
    if result.device.kind != "phone":
        kind = result.device.kind
        return f"made on: {kind}, whose times are not a phone's", "measure on a phone"
    golden = result.golden
    if golden is not None and not golden.passed:
        apart = f"largest difference {golden.max_abs:.3g}, tolerance {golden.tolerance:.3g}"
        first = f"; {golden.faults[0]}" if golden.faults else ""
        return f"the golden texts failed on the phone ({apart}{first})", "try another scheme"
    if not result.valid:
        reasons = "; ".join(result.invalid_because) or "no reason given"
        return f"not valid: {reasons}", "measure again, with the app in sight until it is done"
    if not own_runs(result, bundle):
        return "no file of this bundle was measured", "name the bundle that was on the phone"
    return None


def _model(result: PhoneResult) -> str:
    return f"{result.device.manufacturer} {result.device.model}"


def _tell(progress: Progress, name: str) -> Callable[[str, int], None]:
    """A line at each phase of the app, and at each step of a long one."""
    last = ""

    def tell(phase: str, percent: int) -> None:
        nonlocal last
        line = f"  {name}: {phase} {percent // STEP * STEP} %"
        if line != last:
            progress.note(line)
            last = line

    return tell
