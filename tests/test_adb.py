"""The adb runner against a server that speaks adb's protocol; no phone can run here."""

import os
import shutil
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from adb_phone import Phone

from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.runners import Job, LostConnection, adb_device, find_runner
from edgebert.pipeline.runners.adb import adb_runner
from edgebert.pipeline.runners.adb_device import FILES
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.device_rows import run_on
from edgebert.targets.errors import InputError, MachineError

ROWS = [{"id": i, "text": "the film was good " * (1 + i % 3)} for i in range(4)]


@pytest.fixture
def bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Bundle:
    return write_bundle(tiny_bundle_inputs, tmp_path / "bundle")


def test_rows_check_and_measure(phone: Phone, bundle: Bundle, tmp_path: Path) -> None:
    there = run_on(find_runner("adb"), bundle, "onnx", ROWS, tmp_path / "growing")
    here = run_on(find_runner("local"), bundle, "onnx", ROWS, tmp_path / "growing")
    assert [x.tolist() for x in there.logits] == [x.tolist() for x in here.logits]
    (answer,) = find_runner("adb:R58M123").run(Job("check", bundle.path, "tflite"))
    assert answer["passed"] is True
    (cost,) = find_runner("adb").run(Job("measure", bundle.path, "onnx", runs=7, threads=2))
    assert cost["runs"] == 7
    assert phone.left_behind() == []
    intent = phone.started[-1]
    assert (intent["mode"], intent["threads"], intent["format"]) == ("measure", "2", "onnx")
    assert phone.started[1]["mode"] == "golden"
    assert intent["bundle"] == intent["result"]


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"devices": {}}, MachineError, "no Android device"),
        ({"devices": {"A": "device", "B": "device"}}, InputError, "several devices"),
        ({"devices": {"A": "unauthorized"}}, MachineError, "is unauthorized"),
        ({"space": 1000}, MachineError, "cannot write there: .* MB are free"),
        ({"foreign_result": True}, InputError, "of another bundle"),
    ],
)
def test_what_is_wrong_is_said(
    phone: Phone, bundle: Bundle, change: dict[str, object], kind: type[Exception], message: str
) -> None:
    for name, value in change.items():
        setattr(phone, name, value)
    with pytest.raises(kind, match=message) as caught:
        list(adb_runner("adb").run(Job("check", bundle.path, "onnx")))
    assert caught.value.cure  # type: ignore[attr-defined]
    assert phone.left_behind() == []


def test_another_serial_than_the_one_that_is_there(phone: Phone, bundle: Bundle) -> None:
    with pytest.raises(MachineError, match="no such device") as caught:
        list(adb_runner("adb:X").run(Job("check", bundle.path)))
    assert "R58M123" in caught.value.cure
    with pytest.raises(InputError, match="write adb"):
        find_runner("adb:")


def test_the_app_is_installed_where_it_is_missing(
    phone: Phone, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "edgebert-demo.apk"
    monkeypatch.setattr(adb_device, "APK", built)
    phone.installed = False
    with pytest.raises(MachineError, match="is not on the device") as caught:
        list(adb_runner("adb").run(Job("check", bundle.path)))
    assert "--apk FILE" in caught.value.cure
    built.write_bytes(b"an APK")
    for runner in (adb_runner("adb"), adb_runner("adb"), adb_runner("adb", apk=built)):
        (answer,) = runner.run(Job("check", bundle.path))
        assert answer["passed"] is True
    assert phone.sent == [6, 6]  # not where it is there and none was given
    phone.install_says = "Failure [INSTALL_FAILED_VERSION_DOWNGRADE]"
    with pytest.raises(MachineError, match="VERSION_DOWNGRADE") as caught:
        list(adb_runner("adb", apk=built).run(Job("check", bundle.path)))
    assert "adb uninstall" in caught.value.cure
    with pytest.raises(InputError, match="no such APK"):
        list(adb_runner("adb", apk=tmp_path / "none.apk").run(Job("check", bundle.path)))
    phone.space = 1
    with pytest.raises(MachineError, match="cannot write there"):
        list(adb_runner("adb", apk=built).run(Job("check", bundle.path)))
    assert phone.left_behind() == []


def test_an_app_that_never_made_its_folder(
    phone: Phone, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adb_device, "START_S", 0.1)
    phone.locked = True
    with pytest.raises(MachineError, match="no folder for its files"):
        list(adb_runner("adb").run(Job("check", bundle.path)))


def test_rows_of_tokens_are_refused_before_anything_is_sent(
    phone: Phone, bundle: Bundle, tmp_path: Path
) -> None:
    rows = [{"id": 0, "text": "a b", "tokens": ["a", "b"]}]
    with pytest.raises(InputError, match="takes no rows of tokens"):
        run_on(adb_runner("adb"), bundle, "onnx", rows, tmp_path / "growing")
    assert phone.started == []


def test_an_app_of_another_version(phone: Phone, bundle: Bundle) -> None:
    phone.says = {"schema_version": 2}
    with pytest.raises(MachineError, match="schema_version") as caught:
        list(adb_runner("adb").run(Job("check", bundle.path)))
    assert "--apk" in caught.value.cure


def test_a_bundle_altered_on_the_way(
    phone: Phone, bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = phone.app

    def alter_first(intent: dict[str, str]) -> None:
        (file,) = phone.path(f"{FILES}/bundles").glob("*/model.onnx")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        app(intent)

    monkeypatch.setattr(phone, "app", alter_first)
    with pytest.raises(InputError, match=r"model\.onnx is not the file that the manifest"):
        run_on(adb_runner("adb"), bundle, "onnx", ROWS, tmp_path / "growing")
    assert phone.left_behind() == []


def test_the_app_goes_on_while_the_cable_is_out(phone: Phone, bundle: Bundle) -> None:
    app = phone.app

    def unplug(intent: dict[str, str]) -> None:
        phone.unplugged = True
        app(intent)
        threading.Timer(1.0, setattr, (phone, "unplugged", False)).start()

    phone.app = unplug  # type: ignore[method-assign]
    (answer,) = adb_runner("adb").run(Job("check", bundle.path, "onnx"))
    assert answer["passed"] is True
    assert phone.left_behind() == []


def test_unplugged_for_good_and_silent(phone: Phone, bundle: Bundle) -> None:
    phone.idle = True
    with pytest.raises(MachineError, match="no progress for 1 s"):
        list(replace(adb_runner("adb"), silence_s=1).run(Job("check", bundle.path)))
    assert phone.left_behind() == []
    threading.Timer(1.0, setattr, (phone, "unplugged", True)).start()
    with pytest.raises(LostConnection, match="not found"):
        list(replace(adb_runner("adb"), reconnect_s=1).run(Job("check", bundle.path)))


@pytest.mark.skipif(shutil.which("adb") is None, reason="no adb on this machine")
def test_the_real_adb_server_without_a_device(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", port)
    environment = {**os.environ, "HOME": str(tmp_path), "ADB_MDNS": "0"}
    subprocess.run(
        ["adb", "-P", port, "start-server"], env=environment, check=True, capture_output=True
    )
    try:
        with pytest.raises(MachineError, match="no Android device is connected"):
            list(adb_runner("adb").run(Job("check", bundle.path)))
    finally:
        subprocess.run(["adb", "-P", port, "kill-server"], check=True, capture_output=True)
