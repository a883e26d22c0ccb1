"""A stand-in for adb's server and for a phone with the demo app.

What adbutils sends is answered as adb's SERVICES.TXT and SYNC.TXT have it; files land in a folder,
and the app is a stand-in that runs run.py on what was pushed there.
"""

import hashlib
import json
import shlex
import shutil
import socketserver
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from edgebert.pipeline.runners.adb_device import FILES, PACKAGE
from edgebert.pipeline.runners.runner import RUN_PY

# What the app's own tests leave; everything that run.py does not say is taken from it.
SAMPLE = Path(__file__).parent / "data/phone/measurement.json"


class Phone:
    """The phone: a folder for /sdcard and what its state is.

    Attributes:
        devices: serial -> state, as `adb devices` says it.
        installed: whether the app is there.
        space: bytes that may still be written.
        unplugged: while True, the server has no such device.
        locked: while True, the app cannot start.
        idle: while True, the app does nothing with an intent.
        foreign_result: whether the app answers for another bundle.
        kind: of the device, as the app says it.
        says: what the app says in place of what it found out.
        install_says: what `pm install` prints.
        sent: sizes of the APKs that were installed.
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
        self.locked = False
        self.kind = "phone"
        self.says: dict[str, Any] = {}
        self.install_says = "Success"
        self.sent: list[int] = []
        self.started: list[dict[str, str]] = []

    def path(self, place: str) -> Path:
        return self.sdcard / place.removeprefix("/sdcard/").lstrip("/")

    def left_behind(self) -> list[str]:
        files = (file for file in self.sdcard.rglob("*") if file.is_file())
        return [str(file.relative_to(self.sdcard)) for file in files]

    def shell(self, command: str) -> str:
        words = shlex.split(command)
        if words[:2] == ["pm", "path"]:
            return f"package:/data/app/{PACKAGE}/base.apk\n" if self.installed else ""
        if words[:2] == ["pm", "install"]:
            self.installed = self.install_says == "Success"
            self.sent.append(self.path(words[-1]).stat().st_size)
            return self.install_says
        if words[:2] == ["am", "start"] and words[3].endswith(".MainActivity"):
            if not self.locked:
                self.path(FILES).mkdir(parents=True, exist_ok=True)
        elif words[:2] == ["am", "start"]:
            flags = zip(words[4::3], words[5::3], words[6::3], strict=True)
            self.started.append({key: value for _, key, value in flags})
            if not self.idle:
                threading.Thread(target=self.app, args=(self.started[-1],), daemon=True).start()
            return f"Starting: Intent {{ cmp={words[3]} }}\n"
        if words[0] == "mkdir":
            assert self.path(FILES).is_dir(), "the app has to own its folder"
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
        result.parent.mkdir(exist_ok=True)
        progress = {"schema_version": 1, "phase": "golden", "percent": 0, "threads": 0, "file": ""}
        result.with_suffix(".progress").write_text(json.dumps(progress), encoding="utf-8")
        partial = result.with_suffix(".partial")
        partial.write_text(json.dumps(self.run_app(intent, bundle)), encoding="utf-8")
        partial.rename(result)

    def run_app(self, intent: dict[str, str], bundle: Path) -> dict[str, Any]:
        """The result of the app."""
        data = (bundle / "manifest.json").read_bytes()
        sha256 = hashlib.sha256(b"another" if self.foreign_result else data).hexdigest()
        said = json.loads(SAMPLE.read_text(encoding="utf-8"))
        said |= {"kind": intent["mode"], "bundle": sha256, "valid": True, "invalid_because": []}
        said |= {"golden": None, "settings": None, "sustained": None, "tokenizer": None}
        said["device"]["kind"] = self.kind
        format = ["--format", intent["format"]] if "format" in intent else []
        words = {
            "golden": ["--check"],
            "measure": ["--measure", "--runs", intent.get("runs", "5")],
            "rows": ["--rows", str(bundle / "rows.jsonl")],
        }[intent["mode"]]
        try:
            said["answers"] = run_py(bundle, *words, *format)
            if intent["mode"] == "measure":
                (said["golden"],) = run_py(bundle, "--check", *format)
                said["answers"] = [self.measured(bundle, one) for one in said["answers"]]
        except subprocess.CalledProcessError as error:
            why = {"error": error.stderr, "code": error.returncode, "answers": []}
            said |= {**why, "bundle": None, "valid": False, "invalid_because": ["the run failed"]}
        return {**said, **self.says}

    def measured(self, bundle: Path, answer: dict[str, Any]) -> dict[str, Any]:
        """A measurement of run.py with what the app says besides."""
        manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
        model = next(m for m in manifest["models"].values() if m["file"] == answer["file"])
        sha256 = hashlib.sha256((bundle / answer["file"]).read_bytes()).hexdigest()
        sample = json.loads(SAMPLE.read_text(encoding="utf-8"))["answers"][1]
        about = {"scheme": model["scheme"], "file_sha256": sha256, "bare_mb": None}
        return {**sample, **answer, **about, "machine": "maker model, soc, arm64-v8a"}


def run_py(bundle: Path, *words: str) -> list[dict[str, Any]]:
    """What run.py prints, a check that fails included."""
    command = [sys.executable, "-P", str(RUN_PY), "--bundle", str(bundle), *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode > 1:
        done.check_returncode()
    return [json.loads(line) for line in done.stdout.splitlines()]


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
