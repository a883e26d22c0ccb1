"""This machine: run.py in a process of its own, so that what it measures is its own memory."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from edgebert.targets.errors import EdgebertError, InputError, MachineError

RUN_PY = Path(__file__).parents[1] / "runtimes" / "run.py"


@dataclass(frozen=True)
class LocalRunner:
    """Runs edgebert's own copy of run.py: a bundle's may be anybody's."""

    name: str = "local"

    def run(self, arguments: Sequence[str | Path]) -> list[dict[str, JsonValue]]:
        """Run run.py and return the objects it prints; as in `Runner.run`."""
        # -P: modules beside run.py must not be found in place of those that it imports.
        command = [sys.executable, "-P", str(RUN_PY), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        # 1 with an answer is a verdict (`--check`), 1 without one is a traceback.
        if done.returncode == 0 or (done.returncode == 1 and done.stdout):
            return [json.loads(line) for line in done.stdout.split("\n") if line]
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        message = next((x for x in said if x.startswith("run.py: ")), said[-1])
        message = message.removeprefix("run.py: ")
        if done.returncode == -9:
            raise MachineError(
                "killed, most likely for lack of memory", "run.py", "free some memory"
            )
        kind = {2: InputError, 3: MachineError}.get(done.returncode, EdgebertError)
        raise kind(message, "run.py on this machine")
