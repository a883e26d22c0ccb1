"""Where a bundle is run."""

from edgebert.pipeline.runners.runner import Answer, Job, LostConnection, Runner
from edgebert.targets.errors import InputError

__all__ = ["KNOWN", "Answer", "Job", "LostConnection", "Runner", "find_runner"]

KNOWN = (
    "local, qemu:CPU, qemu-x86:CPU, qemu-arm, ssh:USER@HOST[:PORT], adb[:SERIAL] "
    "(qemu:cortex-a76, for one)"
)


def find_runner(name: str) -> Runner:
    """The runner of a name such as `local` or `qemu:cortex-a76`.

    Raises:
        InputError: there is no such runner.
        MachineError: it is not set up on this machine.
    """
    kind = name.partition(":")[0]
    if name == "local":
        from edgebert.pipeline.runners.local import local_runner

        return local_runner()
    if kind in ("qemu", "qemu-x86", "qemu-arm"):
        from edgebert.pipeline.runners.qemu import qemu_runner

        return qemu_runner(name)
    if kind == "ssh":
        from edgebert.pipeline.runners.ssh import ssh_runner

        return ssh_runner(name)
    if kind == "adb":
        from edgebert.pipeline.runners.adb import adb_runner

        return adb_runner(name)
    raise InputError(f"unknown runner '{name}'", "--on", f"known: {KNOWN}")
