"""Measure a bundle: here, on another machine, on a phone, or from a phone's result."""

from pathlib import Path

from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.phone_result import PhoneResult
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.stages.measure import Measurement, measure_bundle
from edgebert.targets import Format
from edgebert.targets.errors import InputError


def run_measurement(
    path: Path,
    runner: str,
    threads: int | None,
    runs: int,
    formats: tuple[Format, ...],
    apk: Path | None,
    imported: Path | None,
    progress: Progress,
) -> tuple[Measurement, ...]:
    """See `edgebert.pipeline.measure`."""
    from edgebert.pipeline.runners.adb import adb_runner
    from edgebert.pipeline.stages import phones
    from edgebert.pipeline.stages.report import read_report

    on_phone = runner.partition(":")[0] == "adb"
    if imported is not None and (runner != "local" or apk is not None):
        raise InputError("a result that is there is not measured", "--import", "leave --on out")
    if apk is not None and not on_phone:
        raise InputError("an APK is installed on a phone", "--apk", "give --on adb")
    bundle = Bundle.open(path)
    if imported is not None:
        results: tuple[PhoneResult, ...] = (phones.read_result(imported, bundle),)
        name = "import"
    elif on_phone:
        read_report(path)  # what is wrong with it is better said before a minute's run
        place = adb_runner(runner, apk)
        results = phones.measure_phone(bundle, place, threads, runs, formats, progress)
        name = place.name
    else:
        return measure_bundle(bundle, runner, threads, runs, formats)
    phones.add_to_report(bundle, results)
    return tuple(one for result in results for one in phones.measurements(result, bundle, name))
