"""How long the main job takes: a build from nothing, the same build from the cache, and `--help`.

    uv run python benchmarks/times.py

Wall-clock times of this machine; run it while nothing else runs.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = ("build", "--model", "albert", "--target", "android-arm64")


def seconds(arguments: tuple[str, ...], cache: Path) -> float:
    """Time of one command, in seconds."""
    command = [str(Path(sys.executable).with_name("edgebert")), *arguments]
    start = time.monotonic()
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "EDGEBERT_CACHE": str(cache)}
    )
    return time.monotonic() - start


def main() -> None:
    """Print the three times beside their limits."""
    with tempfile.TemporaryDirectory() as folder:
        cache, out = Path(folder) / "cache", str(Path(folder) / "out")
        rows = [
            ("build, from nothing", 120.0, [seconds((*BUILD, "--out", out), cache)]),
            (
                "build, from the cache",
                3.0,
                [seconds((*BUILD, "--out", out), cache) for _ in range(3)],
            ),
            ("--help", 0.3, [seconds(("--help",), cache) for _ in range(5)]),
        ]
    for name, limit, times in rows:
        print(f"{name:<24} {min(times):7.2f} s   limit {limit:g} s   ({len(times)} runs)")


if __name__ == "__main__":
    main()
