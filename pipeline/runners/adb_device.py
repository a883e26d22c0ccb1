"""An Android device through adb: found, with the demo app on it, and files sent to it."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from edgebert.pipeline.runners.runner import LostConnection
from edgebert.targets.errors import InputError, MachineError

if TYPE_CHECKING:
    from adbutils import AdbDevice

PACKAGE = "dev.edgebert.demo"
FILES = f"/sdcard/Android/data/{PACKAGE}/files"
APK = Path(__file__).resolve().parents[2] / "android_demo/build/edgebert-demo.apk"
START_S = 30.0  # a first start on a slow phone takes a few seconds
POLL_S = 0.5


@contextmanager
def adb_errors(name: str) -> Iterator[None]:
    """What adb says, as the errors of a runner."""
    from adbutils import AdbError

    try:
        yield
    except (AdbError, OSError, EOFError) as error:
        raise LostConnection(
            f"adb: {error or type(error).__name__}", name, "plug it in and run it again"
        ) from error


def find_device(name: str, serial: str | None) -> "AdbDevice":
    """The device with this serial, or the only one.

    Args:
        name: of the runner, for errors.
        serial: None for the only one.

    Raises:
        InputError: several, and none was named.
        MachineError: no adb, no device, another one, or one that does not let this machine in.
    """
    from adbutils import AdbClient, AdbError

    client = AdbClient()
    try:
        found = {info.serial: info.state for info in client.list()}
    except (AdbError, OSError) as error:
        cure = "install adb (Debian: `apt install adb`) and run `adb start-server`"
        raise MachineError(f"no adb server: {error}", name, cure) from error
    if not found:
        cure = "connect one, with USB debugging switched on in its developer options"
        raise MachineError("no Android device is connected", name, cure)
    if serial is None and len(found) > 1:
        names = ", ".join(f"adb:{serial}" for serial in found)
        raise InputError("several devices are connected", name, f"name one of {names}")
    serial = serial or next(iter(found))
    if serial not in found:
        cure = f"connected: {', '.join(found)} (`adb devices`)"
        raise MachineError("no such device", name, cure)
    if found[serial] != "device":
        cure = "unlock it and allow USB debugging"
        raise MachineError(f"the device is {found[serial]}", name, cure)
    return client.device(serial=serial)


def prepare_app(device: "AdbDevice", name: str, apk: Path | None) -> None:
    """Install the app where it is missing, and start it where it has no folder yet.

    Args:
        device: where.
        name: of the runner, for errors.
        apk: installed over the app that is there; None: where there is none, the one that
            android_demo/ci/build.sh leaves.

    Raises:
        InputError: there is no such file.
        MachineError: no app and no APK, or the device refuses it.
    """
    installed = str(device.shell(f"pm path {PACKAGE}")).startswith("package:")
    if apk is not None and not apk.is_file():
        raise InputError("no such APK", str(apk), "android_demo/ci/build.sh makes one")
    if apk is not None or not installed:
        _install(device, name, apk or APK)
    # A folder that adb makes belongs to the shell, and older versions keep the app out of it.
    if not device.sync.exists(FILES):
        device.shell(["am", "start", "-n", f"{PACKAGE}/.MainActivity"])
        end = time.monotonic() + START_S
        while not device.sync.exists(FILES):
            if time.monotonic() > end:
                cure = "unlock the phone, open the app once and run it again"
                raise MachineError("the app has no folder for its files", name, cure)
            time.sleep(POLL_S)


def _install(device: "AdbDevice", name: str, apk: Path) -> None:
    from adbutils import AdbError, AdbInstallError

    if not apk.is_file():
        cure = "build it with android_demo/ci/build.sh, or give one with --apk FILE"
        raise MachineError(f"the app {PACKAGE} is not on the device", name, cure)
    place = f"/data/local/tmp/{PACKAGE}.apk"
    try:
        push(device, name, {place: apk}, "/data/local/tmp")
        device.install_remote(place)
    except AdbInstallError as error:
        lines = [line for line in error.output.splitlines() if line.strip()] or ["no reason given"]
        cure = f"`adb uninstall {PACKAGE}` removes another build with its files, where it is that"
        raise MachineError(f"the app cannot be installed: {lines[-1]}", name, cure) from error
    finally:
        with suppress(AdbError, OSError, EOFError):
            device.shell(["rm", "-f", place])


def push(device: "AdbDevice", name: str, files: Mapping[str, Path], folder: str) -> None:
    """Send files.

    Args:
        device: where to.
        name: of the runner, for errors.
        files: by their place on the device.
        folder: on the same storage, to ask for free space.

    Raises:
        MachineError: one cannot be written.
    """
    from adbutils import AdbError

    try:
        for place, file in files.items():
            device.sync.push(file, place, 0o644, check=True)
    except (AdbError, OSError) as error:
        free_kb = re.search(r"\s(\d+)\s+\d+%", str(device.shell(["df", "-k", folder])))
        needed_mb = sum(file.stat().st_size for file in files.values()) / 1e6
        free = f"{int(free_kb[1]) / 1e3:.0f} MB are free there" if free_kb else str(error)
        cure = f"free {needed_mb:.1f} MB on the device"
        raise MachineError(f"cannot write there: {free}", name, cure) from error
