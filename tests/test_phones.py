"""Measuring on a phone and importing what one measured: into the report, whole or not at all.

The phone is a stand-in (adb_phone.py); the imported files are what the app's own tests leave.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from adb_phone import SAMPLE, Phone

from edgebert import pipeline
from edgebert.pipeline.bundle import MANIFEST, Bundle, describe_file
from edgebert.pipeline.device_proof import phone_gates
from edgebert.pipeline.gates import Limits, judge
from edgebert.pipeline.phone_result import PhoneResult
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.runners.adb import adb_runner
from edgebert.pipeline.stages import phones
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.markdown import render_markdown
from edgebert.pipeline.stages.report import read_report
from edgebert.targets.errors import InputError, MachineError


@pytest.fixture
def bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Bundle:
    return write_bundle(tiny_bundle_inputs, tmp_path / "bundle")


def shared(bundle: Bundle, **changes: Any) -> dict[str, Any]:
    """The app's sample, as if it were of this bundle and by the rules."""
    said: dict[str, Any] = json.loads(SAMPLE.read_text(encoding="utf-8"))
    said |= {"bundle": describe_file(bundle.path / MANIFEST).sha256}
    said |= {"valid": True, "invalid_because": []}
    sha256 = bundle.manifest.files["model.onnx"].sha256
    for run in said["answers"]:
        if run["file"] == "model.onnx":
            run["file_sha256"] = sha256
    return said | changes


def write(folder: Path, said: Any) -> Path:
    file = folder / "shared result.json"
    file.write_text(json.dumps(said), encoding="utf-8")
    return file


def reports(bundle: Bundle) -> dict[str, bytes]:
    names = ("report.json", "report.html", "junit.xml")
    return {name: (bundle.path / name).read_bytes() for name in names}


def test_measured_on_a_phone(
    phone: Phone, bundle: Bundle, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {file.name for file in bundle.path.iterdir()}
    (one,) = pipeline.measure(bundle.path, runner="adb", formats=("onnx",), show=True)
    assert (one.file, one.runner, one.machine) == (
        "model.onnx",
        "adb",
        "maker model, soc, arm64-v8a",
    )
    assert one.runs == 1024  # whoever asks for fewer
    assert one.golden_rows and one.golden_max_abs is not None
    assert "golden texts passed there, largest difference" in one.text()
    assert one.memory_mb is None and " MB" not in one.text()
    intent = phone.started[-1]
    assert (intent["mode"], intent["warmups"], intent["tokens"]) == ("measure", "50", "16")
    assert "adb: golden 0 %" in capfd.readouterr().err
    assert phone.left_behind() == []
    again = Bundle.open(bundle.path)  # every checksum holds
    assert {file.name for file in bundle.path.iterdir()} == before
    assert again.manifest == bundle.manifest
    (found,) = read_report(bundle.path).phones
    assert phones.measurements(found, bundle, "adb") == (one,)
    page = (bundle.path / "report.html").read_text(encoding="utf-8")
    assert "maker model, soc, arm64-v8a, Android 15" in page and f"{one.p50_ms:.2f} ms" in page
    assert f"{one.p50_ms:.2f} ms on maker model" in render_markdown(read_report(bundle.path))


def test_the_latency_gate_of_a_build_is_the_phones(bundle: Bundle) -> None:
    onnx_bundle = replace(
        bundle,
        manifest=bundle.manifest.model_copy(
            update={"models": {"onnx": bundle.manifest.models["onnx"]}}
        ),
    )
    said = shared(bundle)
    said["answers"] = said["answers"][:1]  # 8.14 ms
    result = PhoneResult.model_validate_json(json.dumps(said))
    for limit, passed in ((8.0, False), (9.0, True)):
        limits = Limits(max_size_mb=100, max_latency_ms=limit)
        before = judge(limits, "onnx", size_mb=1.0, latency_ms=0.5)
        size, latency = phone_gates(before, limits, (result,), onnx_bundle, adb_runner("adb:X"))
        assert size == before[0]
        assert (latency.name, latency.passed) == ("latency (onnx on adb:X)", passed)
        assert latency.message.startswith("latency (onnx on adb:X): 8.136 ms, limit")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "emulator"}, "emulator, whose times are not a phone's"),
        ({"says": {"valid": False, "invalid_because": ["battery saver"]}}, "valid: battery saver"),
    ],
)
def test_what_is_no_measurement_of_a_phone(
    phone: Phone, bundle: Bundle, change: dict[str, Any], message: str
) -> None:
    for name, value in change.items():
        setattr(phone, name, value)
    before = reports(bundle)
    with pytest.raises(MachineError, match=message) as caught:
        phones.measure_phone(bundle, adb_runner("adb"), formats=("onnx",), progress=Progress())
    assert "maker model" in caught.value.where
    assert reports(bundle) == before


def test_imported(bundle: Bundle, tmp_path: Path) -> None:
    file = write(tmp_path, shared(bundle))
    found = pipeline.measure(bundle.path, imported=file)
    assert [(one.runner, one.threads, one.runs) for one in found] == [
        ("import", 1, 40),
        ("import", 2, 40),
    ]
    assert found[0].speedup == pytest.approx(7.666785 / 8.1357245)
    assert found[0].golden_max_abs == pytest.approx(0.0297653)
    once = read_report(bundle.path).phones
    assert len(once) == 1 and once[0].sustained is not None
    pipeline.measure(bundle.path, imported=file)
    assert read_report(bundle.path).phones == once  # the same result is there once
    later = shared(bundle, started_at="2026-12-01T00:00:00Z")
    pipeline.measure(bundle.path, imported=write(tmp_path, later))
    assert len(read_report(bundle.path).phones) == 2
    Bundle.open(bundle.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"valid": False, "invalid_because": ["too short"]}, "not valid: too short"),
        ({"valid": False}, "not valid: no reason given"),
        ({"bundle": "0" * 64}, "another bundle .albert for android-arm64, manifest 000000000000"),
        ({"bundle": None}, "another bundle"),
        ({"device": "emulator"}, "made on: emulator"),
        ({"device": "host"}, "made on: host"),
        ({"kind": "rows"}, "a result of rows"),
        ({"answers": []}, "no file of this bundle was measured"),
        ({"error": "no space", "code": 3, "answers": []}, "the run failed: no space"),
        ({"golden": "failed"}, "the golden texts failed .* tolerance 0.75; row 1: other token ids"),
        ({"schema_version": 2}, "schema_version: Input should be 1"),
        ({"states": None}, "states: Input should be"),
    ],
)
def test_imports_that_are_refused(
    bundle: Bundle, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    said = shared(bundle)
    if isinstance(kind := change.get("device"), str):
        change = {"device": {**said["device"], "kind": kind}}
    if "golden" in change:
        faults = {"passed": False, "faults": ["row 1: other token ids"]}
        change = {"golden": {**said["golden"], **faults}, "valid": False}
    before = reports(bundle)
    file = write(tmp_path, said | change)
    with pytest.raises(InputError, match=message) as caught:
        pipeline.measure(bundle.path, imported=file)
    assert caught.value.where == str(file) and caught.value.cure
    assert reports(bundle) == before


@pytest.mark.parametrize("data", [b"", b"no JSON", b"\xff\xfe", b"[]", b"null", b"[" * 100_000])
def test_imports_that_are_no_result(bundle: Bundle, tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(data)
    with pytest.raises(InputError) as caught:
        pipeline.measure(bundle.path, imported=file)
    assert caught.value.where == str(file) and caught.value.cure


def test_imports_that_cannot_be_read(bundle: Bundle, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.json", Path("/dev/zero")):
        with pytest.raises(InputError, match="no such file"):
            pipeline.measure(bundle.path, imported=path)
    big = tmp_path / "big.json"
    with big.open("wb") as stream:
        stream.truncate(phones.MOST_BYTES + 1)
    with pytest.raises(InputError, match="too large"):
        pipeline.measure(bundle.path, imported=big)


def test_contradictions(bundle: Bundle, tmp_path: Path) -> None:
    file = write(tmp_path, shared(bundle))
    with pytest.raises(InputError, match="a result that is there is not measured"):
        pipeline.measure(bundle.path, runner="adb", imported=file)
    with pytest.raises(InputError, match="an APK is installed on a phone"):
        pipeline.measure(bundle.path, apk=file)


def test_the_report_is_written_whole_or_not_at_all(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, before = write(tmp_path, shared(bundle)), reports(bundle)
    names = {entry.name for entry in tmp_path.iterdir()}

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("edgebert.pipeline.stages.junit.render_junit", full)
        with pytest.raises(MachineError, match="the disk is full"):
            pipeline.measure(bundle.path, imported=file)
    assert reports(bundle) == before
    assert {entry.name for entry in tmp_path.iterdir()} == names
    (bundle.path / "report.json").unlink()
    with pytest.raises(InputError, match="no report"):
        pipeline.measure(bundle.path, imported=file)
