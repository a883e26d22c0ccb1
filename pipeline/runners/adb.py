"""An Android phone, through the demo app: the bundle goes to its folder, the app runs it there.

The app has what run.py needs in Kotlin and gives the same answers in one file when it is done:

    bundles/NAME/...          the bundle, and rows.jsonl where rows are asked for
    results/NAME.progress     rows done so far
    results/NAME.json         {"bundle": SHA-256 of manifest.json, "answers": [...]}, or
                              {"bundle": ..., "error": "...", "code": 2 or 3}

It goes on while the cable is out, so that a lost connection is waited for.
"""

import json
import re
import shlex
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebert.pipeline.bundle import MANIFEST, describe_file
from edgebert.pipeline.runners.runner import (
    SILENCE_S,
    Answer,
    Job,
    LostConnection,
    failure,
    read_answer,
)
from edgebert.targets.errors import InputError, MachineError

if TYPE_CHECKING:
    from adbutils import AdbDevice

PACKAGE = "dev.edgebert.demo"
FILES = f"/sdcard/Android/data/{PACKAGE}/files"
MODES = {"check": "golden", "rows": "rows", "measure": "measure"}
RECONNECT_S = 60.0  # a cable that is out for longer is out
POLL_S = 0.5


@dataclass(frozen=True)
class AdbRunner:
    """Runs jobs in the demo app.

    Attributes:
        name: as in `Runner`.
        serial: of the device; None: the only one.
        silence_s: seconds without progress after which it is given up.
        reconnect_s: seconds without the device after which it is given up.
    """

    name: str
    serial: str | None
    emulated: bool = False
    silence_s: float = SILENCE_S
    reconnect_s: float = RECONNECT_S

    def run(self, job: Job) -> Iterator[Answer]:
        """As in `Runner.run`; the answers come all at the end.

        Raises:
            InputError: a job that the app cannot do.
        """
        if job.bundle is None or job.outputs or job.models:
            raise InputError("a phone runs bundles, not single files", self.name, "build a bundle")
        with self._adb_errors():
            device = self._device()
            name = f"edgebert-{uuid.uuid4().hex[:12]}"
            try:
                self._push(device, job, name)
                self._start(device, job, name)
                result = self._result(device, name)
            finally:
                self._remove(device, name)
        yield from self._answers(result, describe_file(job.bundle / MANIFEST).sha256)

    @contextmanager
    def _adb_errors(self) -> Iterator[None]:
        """What adb says, as the errors of a runner."""
        from adbutils import AdbError

        try:
            yield
        except (AdbError, OSError, EOFError) as error:
            raise LostConnection(
                f"adb: {error or type(error).__name__}", self.name, "plug it in and run it again"
            ) from error

    def _device(self) -> "AdbDevice":
        """The device.

        Raises:
            InputError: several, and none was named; or another than the named one.
            MachineError: no adb, no device, or one that does not let this machine in.
        """
        from adbutils import AdbClient, AdbError

        client = AdbClient()
        try:
            found = {info.serial: info.state for info in client.list()}
        except (AdbError, OSError) as error:
            cure = "install adb (Debian: `apt install adb`) and run `adb start-server`"
            raise MachineError(f"no adb server: {error}", self.name, cure) from error
        if not found:
            cure = "connect one, with USB debugging switched on in its developer options"
            raise MachineError("no Android device is connected", self.name, cure)
        if self.serial is None and len(found) > 1:
            names = ", ".join(f"adb:{serial}" for serial in found)
            raise InputError("several devices are connected", self.name, f"name one of {names}")
        serial = self.serial or next(iter(found))
        if serial not in found:
            raise MachineError(
                "no such device", self.name, f"connected: {', '.join(found)} (`adb devices`)"
            )
        if found[serial] != "device":
            cure = "unlock it and allow USB debugging"
            raise MachineError(f"the device is {found[serial]}", self.name, cure)
        device = client.device(serial=serial)
        if not str(device.shell(f"pm path {PACKAGE}")).startswith("package:"):
            cure = "build android_demo/ and install it: adb install -r edgebert-demo.apk"
            raise MachineError(f"the app {PACKAGE} is not on the device", self.name, cure)
        return device

    def _push(self, device: "AdbDevice", job: Job, name: str) -> None:
        from adbutils import AdbError

        assert job.bundle is not None
        folder = f"{FILES}/bundles/{name}"
        device.shell(["mkdir", "-p", folder, f"{FILES}/results"])
        files = [file for file in sorted(job.bundle.iterdir()) if file.is_file()]
        try:
            for file in files:
                device.sync.push(file, f"{folder}/{file.name}", 0o644, check=True)
            if job.rows is not None:
                device.sync.push(job.rows, f"{folder}/rows.jsonl", 0o644, check=True)
        except (AdbError, OSError) as error:
            free_kb = re.search(r"\s(\d+)\s+\d+%", str(device.shell(["df", "-k", FILES])))
            needed_mb = sum(file.stat().st_size for file in files) / 1e6
            free = f"{int(free_kb[1]) / 1e3:.0f} MB are free there" if free_kb else str(error)
            cure = f"free {needed_mb:.1f} MB on the device"
            raise MachineError(f"cannot write there: {free}", self.name, cure) from error

    def _start(self, device: "AdbDevice", job: Job, name: str) -> None:
        words = ["am", "start", "-n", f"{PACKAGE}/.MeasureActivity"]
        texts = {"bundle": name, "mode": MODES[job.action], "result": name}
        texts |= {} if job.format is None else {"format": job.format}
        numbers = {} if job.threads is None else {"threads": job.threads}
        if job.action == "measure":
            numbers |= {"tokens": job.tokens, "runs": job.runs, "warmups": job.warmups}
        for key, text in texts.items():
            words += ["--es", key, text]
        for key, number in numbers.items():
            words += ["--ei", key, str(number)]
        said = str(device.shell(shlex.join(words)))
        if "Error" in said:
            line = next(line for line in said.splitlines() if "Error" in line)
            cure = "install the newest android_demo/"
            raise MachineError(f"the app did not start: {line}", self.name, cure)

    def _result(self, device: "AdbDevice", name: str) -> str:
        """Wait for the result, as long as there is progress; the text of its file."""
        from adbutils import AdbError

        place = f"{FILES}/results/{name}"
        last, moved, seen = "", time.monotonic(), time.monotonic()
        while True:
            try:
                if device.sync.exists(f"{place}.json"):
                    return str(device.sync.read_text(f"{place}.json"))
                now = ""
                if device.sync.exists(f"{place}.progress"):
                    now = device.sync.read_text(f"{place}.progress")
                seen = time.monotonic()
            except (AdbError, OSError, EOFError):
                if time.monotonic() - seen > self.reconnect_s:
                    raise
                now = last
                time.sleep(POLL_S)
            if now != last:
                last, moved = now, time.monotonic()
            if time.monotonic() - moved > self.silence_s:
                what = f"no progress for {self.silence_s:g} s"
                raise MachineError(what, self.name, "keep the screen on, or take fewer rows")
            time.sleep(POLL_S)

    def _remove(self, device: "AdbDevice", name: str) -> None:
        """Leave nothing on the device, if it is still there."""
        from adbutils import AdbError

        with suppress(AdbError, OSError, EOFError):
            places = [f"{FILES}/bundles/{name}", f"{FILES}/results/{name}"]
            device.shell(f"rm -rf {places[0]} {places[1]}.json {places[1]}.progress")

    def _answers(self, result: str, sha256: str) -> Iterator[Answer]:
        found = read_answer(result, self.name)
        if found.get("bundle") != sha256:
            raise InputError(
                "the result is of another bundle than the one that was sent",
                self.name,
                "run it again; if it stays, install the newest android_demo/",
            )
        if "error" in found:
            code = found.get("code")
            raise failure(code if isinstance(code, int) else 1, str(found["error"]), self.name)
        answers = found.get("answers")
        if not isinstance(answers, list):
            raise MachineError("the result has no answers", self.name, "install the newest app")
        yield from (read_answer(json.dumps(answer), self.name) for answer in answers)


def adb_runner(name: str) -> AdbRunner:
    """The runner `adb` or `adb:SERIAL`.

    Raises:
        InputError: not of that form.
    """
    kind, colon, serial = name.partition(":")
    if kind != "adb" or (colon and not serial):
        raise InputError(f"cannot read '{name}'", "--on", "write adb or adb:SERIAL")
    return AdbRunner(name, serial or None)
