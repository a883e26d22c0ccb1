"""Instructions of one inference on an Arm processor, counted under qemu: a count, not a time.

    uv run edgebert doctor --fix qemu
    uv run python benchmarks/arm64_instructions.py MODEL_FILE [--cpu cortex-a76] [--tokens 32]

LiteRT repeats to the instruction, onnxruntime to 1 %. It needs Debian 12 (its dynamic qemu-user 7.2
has plugins, later packages are static), gcc, and the userland of `edgebert doctor --fix qemu`.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

from edgebert.pipeline.cache import Cache
from edgebert.pipeline.folders import replace_folder
from edgebert.pipeline.runners.apt import CURE, PrivateApt
from edgebert.pipeline.runners.runner import RUN_PY
from edgebert.pipeline.runners.userland import find_userland
from edgebert.targets.errors import MachineError

HERE = Path(__file__).parent
PACKAGES = ("qemu-user", "libcapstone4", "liburing2")  # what else it needs, most systems have
# As Linux names what a processor can do; qemu 7.2 would show the host's file, and the runtimes
# would take instructions that `-cpu` does not have.
BASE = "fp asimd evtstrm aes pmull sha1 sha2 crc32"
DOT = f"{BASE} atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs"
CPUS = {
    "cortex-a76": ("0xd0b", DOT),
    "cortex-a72": ("0xd08", f"{BASE} cpuid"),
    "cortex-a53": ("0xd03", f"{BASE} cpuid"),
}


def set_up() -> Path:
    """The folder with qemu 7.2 and the plugin, made on first use (15 MB of disk, some seconds).

    Raises:
        MachineError: no gcc, no apt, or another system than Debian 12.
    """
    folder = Cache().root / "machines" / "instruction-counter"
    if folder.is_dir():
        return folder
    if shutil.which("gcc") is None:
        raise MachineError("gcc is not on this machine", "", "apt install gcc libc6-dev")
    with replace_folder(folder, lambda _: None) as fresh:
        apt = PrivateApt(fresh / "apt", "arm64")
        for package in PACKAGES:
            apt.unpack_alone(package, fresh / "qemu")
        (fresh / "bin").mkdir()
        shutil.move(fresh / "qemu/usr/bin/qemu-aarch64", fresh / "bin/qemu-aarch64")
        shutil.move(fresh / "qemu/usr/lib", fresh / "lib")
        for leftover in ("apt", "qemu"):
            shutil.rmtree(fresh / leftover)
        source, plugin = HERE / "count_instructions.c", fresh / "count_instructions.so"
        command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(plugin), str(source)]
        subprocess.run(command, check=True)
    return folder


def guest_root(folder: Path, userland_root: Path, cpu: str) -> Path:
    """The userland's root with a /proc/cpuinfo of `cpu` in it; links, nothing is copied."""
    root = folder / f"root-{cpu}"
    shutil.rmtree(root, ignore_errors=True)
    (root / "proc").mkdir(parents=True)
    for entry in userland_root.iterdir():
        if entry.name != "proc":
            (root / entry.name).symlink_to(entry.resolve())
    part, features = CPUS[cpu]
    text = (
        f"processor\t: 0\nBogoMIPS\t: 100.00\nFeatures\t: {features}\n"
        f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\n"
        f"CPU part\t: {part}\nCPU revision\t: 0\n"
    )
    (root / "proc/cpuinfo").write_text(text, encoding="utf-8")
    return root


def count(model: Path, cpu: str = "cortex-a76", tokens: int = 32, runs: int = 5) -> dict[str, Any]:
    """Instructions of an inference of a model file, batch 1, one thread.

    Args:
        model: model.onnx or model.tflite.
        cpu: a key of `CPUS`.
        tokens: length of the row; a TFLite file pads it to its next length.
        runs: counted inferences, after two that are not.

    Raises:
        MachineError: the userland or a program is missing, or the file does not run there.
    """
    place = find_userland("qemu")
    place.emulator("qemu-aarch64")  # says how to set it up
    folder = set_up()
    root = guest_root(folder, place.root, cpu)
    libraries = next((folder / "lib").glob("*-linux-gnu"))
    command = [
        *(str(folder / "bin/qemu-aarch64"), "-cpu", cpu, "-L", str(root)),
        *("-plugin", str(folder / "count_instructions.so")),
        *("-E", f"PYTHONPATH={place.site}", "-E", "OMP_NUM_THREADS=1"),
        *("-U", "LD_LIBRARY_PATH", str(place.python), str(HERE / "arm64_guest.py")),
        *(str(RUN_PY.parent), str(model), str(tokens), str(runs)),
    ]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run(
        command, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    lines = [line.split() for line in done.stderr.splitlines()]
    marks = [int(words[2]) for words in lines if words[:1] == ["mark"]]
    if done.returncode != 0 or len(marks) != runs + 1:
        said = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        raise MachineError(f"the count failed: {said}", str(model), CURE)
    each = [after - before for before, after in itertools.pairwise(marks)]
    return {
        "file": str(model),
        "cpu": cpu,
        "tokens": tokens,
        "runtime": done.stdout.strip(),
        "instructions": int(median(each)),
        "lowest": min(each),
        "highest": max(each),
        "runs": runs,
    }


def main() -> None:
    """Print a JSON object for each file and processor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="+")
    parser.add_argument("--cpu", choices=sorted(CPUS), nargs="+", default=sorted(CPUS))
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    for model in arguments.model:
        for cpu in arguments.cpu:
            print(json.dumps(count(model, cpu, arguments.tokens, arguments.runs)), flush=True)


if __name__ == "__main__":
    main()
