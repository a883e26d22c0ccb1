"""Another processor's Python with the runtimes, in the cache; qemu runs it.

`edgebert doctor --fix qemu` makes it: Debian's packages (`apt.py`) and wheels, some hundred MB. The
wheels have the versions of this machine's own runtimes, so that only the processor differs.
"""

import hashlib
import importlib.util
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from edgebert.pipeline.cache import Cache
from edgebert.pipeline.folders import replace_folder
from edgebert.pipeline.runners.apt import PrivateApt
from edgebert.targets.errors import InputError, MachineError

LIBRARIES = ("libstdc++6", "libgcc-s1", "libgomp1", "zlib1g", "libexpat1")
PYTHON = ("python3-minimal", "libpython3-stdlib")
# manylinux tags that Debian 12 (glibc 2.36) takes; pip does not derive the older ones.
GLIBC = ("2_34", "2_31", "2_28", "2_27", "2_24", "2_17")


@dataclass(frozen=True)
class Userland:
    """What a kind of machine needs.

    Attributes:
        name: of the `doctor` check and the folder.
        serves: the runners that it is for.
        architecture: as Debian calls it.
        machine: as wheels call it.
        emulators: programs of the package qemu-user.
        packages: Debian's, besides Python.
        wheels: from the package index.
        size_mb, seconds: what setting it up took, for who has to wait.
    """

    name: str
    serves: str
    architecture: str
    machine: str
    emulators: tuple[str, ...]
    packages: tuple[str, ...]
    wheels: tuple[str, ...]
    size_mb: int
    seconds: int

    @property
    def folder(self) -> Path:
        """Where it is; other versions of the runtimes have another folder."""
        digest = hashlib.sha256(repr((self.packages, self.wheels)).encode()).hexdigest()
        return Cache().root / "machines" / f"{self.name}-{digest[:12]}"

    @property
    def ready(self) -> bool:
        """Whether it is set up."""
        return self.folder.is_dir()

    @property
    def root(self) -> Path:
        """The foreign system's root folder."""
        return self.folder / "root"

    @property
    def site(self) -> Path:
        """The foreign Python's packages."""
        return self.folder / "site"

    def emulator(self, program: str) -> Path:
        """A program of qemu-user.

        Raises:
            MachineError: it is not set up.
        """
        if not self.ready:
            raise MachineError(
                f"the {self.name} userland is not set up",
                str(self.folder),
                f"`edgebert doctor --fix {self.name}` does it ({self.cost})",
            )
        return self.folder / "bin" / program

    @property
    def python(self) -> Path:
        """The foreign Python."""
        return next(iter(sorted((self.root / "usr/bin").glob("python3.*[0-9]"))))

    @property
    def cost(self) -> str:
        """Size and time, for people."""
        return f"{self.size_mb} MB of disk, about {self.seconds} s"

    def set_up(self) -> None:
        """Download and unpack it, whole or not at all.

        Raises:
            MachineError: no apt, no pip, no network, or no room.
        """
        print(f"setting up {self.folder}: {self.cost}", file=sys.stderr, flush=True)
        cure = "put the cache elsewhere with EDGEBERT_CACHE"
        with replace_folder(self.folder, lambda _: None, cure) as folder:
            apt = PrivateApt(folder / "apt", self.architecture)
            apt.unpack_alone("qemu-user", folder / "qemu", apt.backports)
            (folder / "bin").mkdir()
            for program in self.emulators:
                shutil.move(folder / "qemu/usr/bin" / program, folder / "bin" / program)
            apt.unpack((*PYTHON, *LIBRARIES, *self.packages), folder / "root")
            for leftover in ("apt", "qemu", "root/usr/share"):
                shutil.rmtree(folder / leftover)
            (python,) = (folder / "root/usr/bin").glob("python3.*[0-9]")
            install_wheels(self.wheels, self.machine, python.name[6:], folder / "site")


def install_wheels(wheels: Sequence[str], machine: str, version: str, site: Path) -> None:
    """Wheels for another processor, from the index of the user's own configuration.

    Args:
        wheels: requirements; what they require in turn is not installed.
        machine: as wheels call it.
        version: of Python, `3.11`.
        site: where to.

    Raises:
        MachineError: neither pip nor uv, or no such wheel.
    """
    common = ["--no-deps", "--python-version", version, "--only-binary", ":all:"]
    common += ["--target", str(site), *wheels]
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else []
    pip = pip or [name for name in [shutil.which("pip")] if name]
    if pip:
        tags = [tag for glibc in GLIBC for tag in ("--platform", f"manylinux_{glibc}_{machine}")]
        command = [*pip, "install", "--quiet", *tags, *common]
    elif uv := shutil.which("uv"):
        tag = f"{machine}-manylinux_2_28"
        command = [uv, "pip", "install", "--quiet", "--python-platform", tag, *common]
    else:
        raise MachineError("neither pip nor uv is on this machine", "", "install pip")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.lower().startswith("error")]
        raise MachineError(
            f"no wheels: {(said or done.stderr.splitlines() or ['no message'])[-1]}",
            " ".join(wheels),
            "check the network, and the index in pip's configuration",
        )


def _pinned(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}=={metadata.version(name)}" for name in names)


def userlands() -> dict[str, Userland]:
    """The machines that can be set up, by the name that `doctor --fix` takes."""
    arm64 = Userland(
        name="qemu",
        serves="--on qemu:CPU, qemu-x86:CPU",
        architecture="arm64",
        machine="aarch64",
        emulators=("qemu-aarch64", "qemu-x86_64"),
        packages=(),
        wheels=_pinned("numpy", "onnxruntime", "ai-edge-litert", "tokenizers"),
        size_mb=290,
        seconds=30,
    )
    armhf = Userland(
        name="qemu-arm",
        serves="--on qemu-arm",
        architecture="armhf",
        machine="armv7l",
        emulators=("qemu-arm",),
        packages=("python3-numpy",),
        wheels=("tflite-runtime==2.14.0", *_pinned("tokenizers")),
        size_mb=200,
        seconds=60,
    )
    return {one.name: one for one in (arm64, armhf)}


def find_userland(name: str) -> Userland:
    """The userland of that name.

    Raises:
        InputError: there is none.
    """
    known = userlands()
    if name not in known:
        raise InputError(f"no userland '{name}'", "", f"known: {', '.join(known)}")
    if platform.system() != "Linux":
        raise MachineError("qemu's user mode runs on Linux only", platform.system(), "")
    return known[name]
