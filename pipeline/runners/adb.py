"""An Android phone, through the demo app: the bundle goes to its folder, the app runs it there.

The app has what run.py needs in Java and gives the same answers in one file when it is done:

    bundles/NAME/...          the bundle, and rows.jsonl where rows are asked for
    results/NAME.progress     one line of JSON, written anew every second
    results/NAME.json         as android_demo/measurement.schema.json has it

It goes on while the cable is out, so that a lost connection is waited for.
"""

import json
import shlex
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from edgebert.pipeline.bundle import MANIFEST, describe_file
from edgebert.pipeline.phone_result import PhoneResult
from edgebert.pipeline.runners.adb_device import (
    FILES,
    PACKAGE,
    POLL_S,
    adb_errors,
    find_device,
    prepare_app,
    push,
)
from edgebert.pipeline.runners.runner import SILENCE_S, Answer, Job, failure
from edgebert.targets.errors import InputError, MachineError

if TYPE_CHECKING:
    from adbutils import AdbDevice

MODES = {"check": "golden", "rows": "rows", "measure": "measure"}
RECONNECT_S = 60.0  # a cable that is out for longer is out


@dataclass(frozen=True)
class AdbRunner:
    """Runs jobs in the demo app.

    Attributes:
        name: as in `Runner`.
        serial: of the device; None: the only one.
        apk: the app to install; None: only where there is none, the one that was built here.
        told: called with phase and percent as the app reports them; None: nobody.
        silence_s: seconds without progress after which it is given up.
        reconnect_s: seconds without the device after which it is given up.
    """

    name: str
    serial: str | None
    emulated: bool = False
    apk: Path | None = None
    told: Callable[[str, int], None] | None = None
    silence_s: float = SILENCE_S
    reconnect_s: float = RECONNECT_S

    def run(self, job: Job) -> Iterator[Answer]:
        """As in `Runner.run`; the answers come all at the end.

        Raises:
            InputError: a job that the app cannot do.
        """
        for answer in self.result(job).answers:
            yield answer.model_dump(mode="json")

    def result(self, job: Job) -> PhoneResult:
        """Run a job; all that the app says of it, and of itself and the device.

        Raises:
            InputError: a job that the app cannot do, or a result of another bundle.
            MachineError: the device lacks something, or the app is of another version.
        """
        if job.bundle is None or job.outputs or job.models:
            raise InputError("a phone runs bundles, not single files", self.name, "build a bundle")
        if job.rows is not None and _has_tokens(job.rows):
            raise InputError(
                "the app splits texts itself and takes no rows of tokens",
                self.name,
                "validate on local, qemu or ssh; `edgebert measure --on adb` checks golden texts",
            )
        with adb_errors(self.name):
            device = find_device(self.name, self.serial)
            prepare_app(device, self.name, self.apk)
            name = f"edgebert-{uuid.uuid4().hex[:12]}"
            try:
                self._push(device, job, name)
                self._start(device, job, name)
                text = self._wait(device, name)
            finally:
                self._remove(device, name)
        return self._read(text, describe_file(job.bundle / MANIFEST).sha256)

    def _push(self, device: "AdbDevice", job: Job, name: str) -> None:
        assert job.bundle is not None
        folder = f"{FILES}/bundles/{name}"
        device.shell(["mkdir", "-p", folder])
        files = {f"{folder}/{x.name}": x for x in sorted(job.bundle.iterdir()) if x.is_file()}
        files |= {} if job.rows is None else {f"{folder}/rows.jsonl": job.rows}
        push(device, self.name, files, FILES)

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

    def _wait(self, device: "AdbDevice", name: str) -> str:
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
                self._tell(now)
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

    def _tell(self, progress: str) -> None:
        if self.told is None:
            return
        with suppress(ValueError, TypeError, KeyError):  # caught half-written, or of another app
            line = json.loads(progress)
            self.told(str(line["phase"]), int(line["percent"]))

    def _read(self, text: str, sha256: str) -> PhoneResult:
        try:
            result = PhoneResult.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "not JSON"
            raise MachineError(
                f"not a result of this edgebert's app: {where}: {first['msg']}",
                self.name,
                "install the app of this edgebert's android_demo/ with --apk",
            ) from error
        if result.error is not None:  # then it may not have read the bundle at all
            raise failure(result.code or 1, result.error, self.name)
        if result.bundle != sha256:
            raise InputError(
                "the result is of another bundle than the one that was sent",
                self.name,
                "run it again; if it stays, install the newest android_demo/",
            )
        return result


def _has_tokens(rows: Path) -> bool:
    with rows.open(encoding="utf-8") as lines:
        return any("tokens" in json.loads(line) for line in lines)


def adb_runner(name: str, apk: Path | None = None) -> AdbRunner:
    """The runner `adb` or `adb:SERIAL`, with the app to install there.

    Raises:
        InputError: not of that form.
    """
    kind, colon, serial = name.partition(":")
    if kind != "adb" or (colon and not serial):
        raise InputError(f"cannot read '{name}'", "--on", "write adb or adb:SERIAL")
    return AdbRunner(name, serial or None, apk=apk)
