"""Processors that are not here, by qemu's user mode: what they compute, not how fast.

`qemu:cortex-a76` (Snapdragon 855, Raspberry Pi 5), `qemu:cortex-a72` (Pi 4) and `qemu:cortex-a53`
(small phones) differ in their int8 instructions: the first has a dot product. `qemu-x86:Haswell`
is an x86 without VNNI, where uint8 x int8 products saturate; `qemu-arm` is a 32-bit Raspberry Pi.
"""

import platform
import sys

from edgebert.pipeline.runners.process import ProcessRunner
from edgebert.pipeline.runners.userland import find_userland
from edgebert.targets.errors import InputError, MachineError

ARM64 = ("cortex-a76", "cortex-a72", "cortex-a53")
# Never `max`: its SVE and SME take minutes an inference under qemu.
X86 = ("Haswell", "Nehalem", "Skylake-Client")
ARM32_CPU = "cortex-a7"  # Raspberry Pi 2; the 3 and 4 run the same instructions in 32-bit mode


def qemu_runner(name: str) -> ProcessRunner:
    """The runner `qemu:CPU`, `qemu-x86:CPU` or `qemu-arm`.

    Raises:
        InputError: an unknown processor.
        MachineError: the userland is not set up.
    """
    kind, _, cpu = name.partition(":")
    if kind == "qemu":
        command = _arm64(_known(cpu, ARM64))
    elif kind == "qemu-x86":
        command = _x86(_known(cpu, X86))
    else:
        if cpu not in ("", ARM32_CPU):
            _known(cpu, (ARM32_CPU,))
        command = _arm32()
    return ProcessRunner(name, tuple(command), emulated=True)


def _known(cpu: str, known: tuple[str, ...]) -> str:
    if cpu not in known:
        raise InputError(f"unknown processor '{cpu}'", "--on", f"known: {', '.join(known)}")
    return cpu


def _arm64(cpu: str) -> list[str]:
    place = find_userland("qemu")
    qemu = place.emulator("qemu-aarch64")
    return [
        *(str(qemu), "-cpu", cpu, "-L", str(place.root)),
        *("-E", f"PYTHONPATH={place.site}", "-E", "OMP_NUM_THREADS=1"),
        *(str(place.python), "-P"),
    ]


def _x86(cpu: str) -> list[str]:
    if platform.machine() != "x86_64":
        raise MachineError(
            "qemu-x86 runs this machine's own Python, which is not for x86",
            platform.machine(),
            "run it on an x86 machine",
        )
    qemu = find_userland("qemu").emulator("qemu-x86_64")
    return [str(qemu), "-cpu", cpu, "-E", "OMP_NUM_THREADS=1", sys.executable, "-P"]


def _arm32() -> list[str]:
    place = find_userland("qemu-arm")
    qemu = place.emulator("qemu-arm")
    libraries = [place.root / "usr/lib/arm-linux-gnueabihf" / name for name in ("blas", "lapack")]
    packages = (place.site, place.root / "usr/lib/python3/dist-packages")
    return [
        *(str(qemu), "-cpu", ARM32_CPU, "-L", str(place.root)),
        *("-E", f"PYTHONPATH={':'.join(map(str, packages))}", "-E", "OMP_NUM_THREADS=1"),
        *("-E", f"LD_LIBRARY_PATH={':'.join(map(str, libraries))}"),
        *(str(place.python), "-P"),
    ]
