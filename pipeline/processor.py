"""What the processor of this machine says it can do."""

from pathlib import Path


def processor_flags() -> frozenset[str]:
    """The words of /proc/cpuinfo, instruction sets among them; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return frozenset()
    return frozenset(text.split())
