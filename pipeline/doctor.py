"""Doctor: what this machine has and lacks for building, with the cure."""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgebert.pipeline.cache import LIBRARIES, Cache, library_versions
from edgebert.pipeline.processor import processor_flags
from edgebert.targets.errors import InputError

BUILD_DISK_GB = 2.0  # a build of a base-size model with its cache
BUILD_MEMORY_GB = 4.0
# Instruction sets that decide the speed and the rounding of int8 on x86.
INT8_FLAGS = ("avx2", "avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        found: what there is.
        passed: whether it is enough.
        needed: False where only some commands need it.
        cure: what to do about it, empty when passed.
        fix: does it, where `edgebert doctor --fix NAME` can.
    """

    name: str
    found: str
    passed: bool
    needed: bool = True
    cure: str = ""
    fix: Callable[[], None] | None = None

    def describe(self) -> dict[str, Any]:
        """For programs."""
        return {name: getattr(self, name) for name in ("name", "found", "passed", "needed", "cure")}

    def text(self) -> str:
        """For people."""
        mark = "ok" if self.passed else "LACKS" if self.needed else "note"
        cure = "" if self.passed or not self.cure else f"\n       {'':<12} {self.cure}"
        return f"{mark:<6} {self.name:<12} {self.found}{cure}"


def examine() -> list[Check]:
    """Look at everything a build needs."""
    return [_python(), *_libraries(), _cpu(), _memory(), _cache(), _hub(), *_userlands()]


def fix(name: str) -> Check:
    """Repair what the check `name` found, and look again.

    Raises:
        InputError: no such check, or one that only its cure helps.
    """
    checks = {check.name: check for check in examine()}
    if name not in checks:
        raise InputError(f"doctor knows no '{name}'", "", f"known: {', '.join(checks)}")
    if checks[name].passed:
        return checks[name]
    repair = checks[name].fix
    if repair is None:
        raise InputError(
            f"'{name}' cannot be fixed from here",
            "",
            checks[name].cure,
        )
    repair()
    return next(check for check in examine() if check.name == name)


def int8_instructions() -> list[str]:
    """The int8 instruction sets of this processor; empty where /proc/cpuinfo is missing."""
    words = processor_flags()
    return [flag for flag in INT8_FLAGS if flag in words]


def _python() -> Check:
    found = platform.python_version()
    return Check("python", found, sys.version_info >= (3, 11), cure="install Python 3.11 or newer")


def _libraries() -> list[Check]:
    lacking = [name for name in LIBRARIES if importlib.util.find_spec(_module_of(name)) is None]
    if lacking:
        cure = f"pip install {' '.join(lacking)}"
        return [Check("libraries", f"missing: {', '.join(lacking)}", False, cure=cure)]
    versions = library_versions()
    shown = ("torch", "onnxruntime", "nncf", "litert-torch", "ai-edge-litert")
    return [Check("libraries", ", ".join(f"{name} {versions[name]}" for name in shown), True)]


def _module_of(package: str) -> str:
    return {"edgebert": "edgebert.pipeline"}.get(package, package.replace("-", "_"))


def _cpu() -> Check:
    flags = int8_instructions()
    exact = any("vnni" in flag or flag in ("amx_int8", "asimddp", "i8mm") for flag in flags)
    return Check(
        "processor",
        f"{platform.machine()}, {os.cpu_count()} cores, int8: {', '.join(flags) or 'none'}",
        exact,
        needed=False,
        cure=""
        if exact
        else "int8 can saturate here: prefer dynamic_wi7c_afp32 for files run on this machine",
    )


def _memory() -> Check:
    total_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    cure = f"a base-size model needs about {BUILD_MEMORY_GB:g} GB"
    return Check("memory", f"{total_gb:.1f} GB", total_gb >= BUILD_MEMORY_GB, cure=cure)


def _cache() -> Check:
    root = Cache().root
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free_gb = shutil.disk_usage(existing).free / 1e9
    writable = existing.is_dir() and os.access(existing, os.W_OK)
    return Check(
        "cache",
        f"{root}, {free_gb:.1f} GB free",
        writable and free_gb >= BUILD_DISK_GB,
        cure=f"free {BUILD_DISK_GB:g} GB, or put the cache elsewhere with EDGEBERT_CACHE",
        fix=Cache().clear,
    )


def _userlands() -> list[Check]:
    """The emulated machines of `--on qemu:CPU`, one check each."""
    from edgebert.pipeline.runners.userland import userlands

    return [
        Check(
            one.name,
            f"{one.folder}" if one.ready else f"not set up ({one.serves})",
            one.ready,
            needed=False,
            cure=f"`edgebert doctor --fix {one.name}` sets it up ({one.cost})",
            fix=one.set_up,
        )
        for one in userlands().values()
    ]


def _hub() -> Check:
    offline = os.environ.get("HF_HUB_OFFLINE", "") in ("1", "true", "ON", "YES")
    return Check(
        "model hub",
        "switched off by HF_HUB_OFFLINE"
        if offline
        else "not asked until a model is loaded from it",
        True,
        needed=False,
    )
