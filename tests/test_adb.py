"""The adb runner against a server that speaks adb's protocol; no phone can run here.

What adbutils sends is answered as adb's SERVICES.TXT and SYNC.TXT have it; files land in a folder,
and the app is a stand-in that runs run.py on what was pushed there.
"""

import hashlib
import json
import os
import shlex
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.runners import Job, LostConnection, find_runner
from edgebert.pipeline.runners.adb import FILES, PACKAGE, adb_runner
from edgebert.pipeline.runners.runner import RUN_PY
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.device_rows import run_on
from edgebert.targets.errors import InputError, MachineError

ROWS = [{"id": i, "text": "the film was good " * (1 + i % 3)} for i in range(4)]


class Phone:
    """The phone: a folder for /sdcard and what its state is.

    Attributes:
        devices: serial -> state, as `adb devices` says it.
        installed: whether the app is there.
        space: bytes that may still be written.
        unplugged: while True, the server has no such device.
        started: the intents so far.
    """

    def __init__(self, sdcard: Path) -> None:
        self.sdcard = sdcard
        self.devices = {"R58M123": "device"}
        self.installed = True
        self.space = 1 << 40
        self.unplugged = False
        self.idle = False
        self.foreign_result = False
        self.started: list[dict[str, str]] = []

    def path(self, place: str) -> Path:
        return self.sdcard / place.removeprefix("/sdcard/")

    def left_behind(self) -> list[str]:
        folder = self.path(FILES)
        return [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]

    def shell(self, command: str) -> str:
        words = shlex.split(command)
        if words[:2] == ["pm", "path"]:
            return f"package:/data/app/{PACKAGE}/base.apk\n" if self.installed else ""
        if words[:2] == ["am", "start"]:
            flags = zip(words[4::3], words[5::3], words[6::3], strict=True)
            self.started.append({key: value for _, key, value in flags})
            if not self.idle:
                threading.Thread(target=self.app, args=(self.started[-1],), daemon=True).start()
            return f"Starting: Intent {{ cmp={words[3]} }}\n"
        if words[0] == "mkdir":
            for place in words[2:]:
                self.path(place).mkdir(parents=True, exist_ok=True)
        elif words[0] == "rm":
            for place in words[2:]:
                path = self.path(place)
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        elif words[0] == "df":
            return f"Filesystem 1K-blocks Used Available Use%\nfuse 9 9 {self.space >> 10} 1% /\n"
        return ""

    def app(self, intent: dict[str, str]) -> None:
        """What the app does with an intent: run the bundle, then leave the result by a rename."""
        bundle = self.path(f"{FILES}/bundles/{intent['bundle']}")
        result = self.path(f"{FILES}/results/{intent['result']}.json")
        flag = {"golden": ["--check"], "measure": ["--measure", "--runs", intent.get("runs", "5")]}
        words = flag.get(intent["mode"], ["--rows", str(bundle / "rows.jsonl")])
        command = [sys.executable, "-P", str(RUN_PY), "--bundle", str(bundle), *words]
        command += ["--format", intent["format"]] if "format" in intent else []
        result.with_suffix(".progress").write_text("0", encoding="utf-8")
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        manifest = b"another" if self.foreign_result else (bundle / "manifest.json").read_bytes()
        said: dict[str, Any] = {"bundle": hashlib.sha256(manifest).hexdigest()}
        if done.returncode == 0:
            said["answers"] = [json.loads(line) for line in done.stdout.splitlines()]
        else:
            said |= {"error": done.stderr, "code": done.returncode}
        partial = result.with_suffix(".partial")
        partial.write_text(json.dumps(said), encoding="utf-8")
        partial.rename(result)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        phone: Phone = self.server.phone  # type: ignore[attr-defined]
        while size := self.rfile.read(4):
            command = self.rfile.read(int(size, 16)).decode()
            if command == "host:version":
                self.okay(b"0029")
            elif command == "host:devices":
                shown = {} if phone.unplugged else phone.devices
                self.okay("".join(f"{s}\t{state}\n" for s, state in shown.items()).encode())
            elif command.startswith("host:tport:serial:"):
                serial = command.rpartition(":")[2]
                if phone.unplugged or serial not in phone.devices:
                    return self.fail(f"device '{serial}' not found")
                self.wfile.write(b"OKAY" + struct.pack("<Q", 1))
            elif command.startswith("shell:"):
                self.wfile.write(b"OKAY" + phone.shell(command.removeprefix("shell:")).encode())
                return None
            elif command == "sync:":
                self.wfile.write(b"OKAY")
                return self.sync(phone)
            else:
                return self.fail(f"unknown host service '{command}'")
        return None

    def okay(self, text: bytes) -> None:
        self.wfile.write(b"OKAY" + f"{len(text):04x}".encode() + text)

    def fail(self, text: str) -> None:
        self.wfile.write(b"FAIL" + f"{len(text):04x}{text}".encode())

    def sync(self, phone: Phone) -> None:
        while head := self.rfile.read(8):
            kind, size = head[:4], struct.unpack("<I", head[4:])[0]
            path = self.rfile.read(size).decode()
            if kind == b"STAT":
                file = phone.path(path)
                found = file.stat() if file.exists() else None
                numbers = (
                    (found.st_mode, found.st_size, int(found.st_mtime)) if found else (0, 0, 0)
                )
                self.wfile.write(b"STAT" + struct.pack("<III", *numbers))
            elif kind == b"SEND":
                self.receive(phone, path.rpartition(",")[0])
            elif kind == b"RECV":
                data = phone.path(path).read_bytes()
                for start in range(0, len(data), 1 << 16):
                    piece = data[start : start + (1 << 16)]
                    self.wfile.write(b"DATA" + struct.pack("<I", len(piece)) + piece)
                self.wfile.write(b"DONE" + struct.pack("<I", 0))

    def receive(self, phone: Phone, place: str) -> None:
        data = b""
        while True:
            kind, size = struct.unpack("<4sI", self.rfile.read(8))
            if kind == b"DONE":
                break
            data += self.rfile.read(size)
        if len(data) > phone.space:
            text = b"No space left on device"
            self.wfile.write(b"FAIL" + struct.pack("<I", len(text)) + text)
            return
        phone.space -= len(data)
        phone.path(place).parent.mkdir(parents=True, exist_ok=True)
        phone.path(place).write_bytes(data)
        self.wfile.write(b"OKAY" + struct.pack("<I", 0))


class AdbServer(socketserver.ThreadingTCPServer):
    """The server; `server_address[1]` is its port."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        super().__init__(("127.0.0.1", 0), _Handler)

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Phone]:
    one = Phone(tmp_path / "sdcard")
    with AdbServer(one) as server:
        server.start()
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.server_address[1]))
        yield one
        server.shutdown()


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
        ({"installed": False}, MachineError, "is not on the device"),
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
