"""Makes the model files: a peer's in its own locked environment, ours by a default build."""

import hashlib
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from edgebert import pipeline
from edgebert.pipeline.cache import Cache
from edgebert.pipeline.folders import replace_folder
from edgebert.targets.errors import EdgebertError

HERE = Path(__file__).parent
PEERS = tuple(sorted(file.parent.name for file in HERE.glob("*/make.py")))
OURS = "edgebert"
TARGET = "android-arm64"
ROWS = 200  # of the test split
PYTHON = "3.11"
LIMIT_S = 1800


class PeerError(Exception):
    """A peer cannot be installed or fails on a model; the message is its error in one line."""


def version_of(maker: str) -> str:
    """The version of a maker, for a peer the locked one."""
    if maker == OURS:
        return metadata.version(OURS)
    lock = (HERE / maker / "requirements.lock").read_text(encoding="utf-8")
    found = re.search(rf"^{maker}==(\S+)", lock, re.MULTILINE)
    assert found, f"{maker} is not in its lock"
    return found[1]


def environment(peer: str) -> Path:
    """The Python of a peer's environment, made of its lock on first use, outside the repository.

    Raises:
        PeerError: a package cannot be installed.
    """
    lock = HERE / peer / "requirements.lock"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    folder = Cache().root / "peers" / f"{peer}-{digest}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _run(["uv", "venv", "--quiet", "--clear", "--python", PYTHON, str(folder)])
        _run(["uv", "pip", "sync", "--quiet", "--python", str(python), str(lock)])
        (folder / "complete").touch()
    return python


def make(peer: str, checkpoint: Path, out: Path) -> list[Path]:
    """A peer's model files; made anew only where they are not there yet.

    Raises:
        PeerError: it cannot be installed, or fails on this model.
    """
    if not out.exists():
        python = environment(peer)
        with replace_folder(out, lambda _: None) as fresh:
            _run([str(python), str(HERE / peer / "make.py"), str(checkpoint), str(fresh)])
    return [file for suffix in ("onnx", "tflite") for file in out.glob(f"model.{suffix}")]


def build(model: str, data: str, out: Path) -> list[Path]:
    """Our model files in both formats, by `edgebert build` at its defaults.

    Without data the weights are random, and nothing is proved.

    Raises:
        PeerError: the build is refused.
    """
    request = pipeline.BuildRequest(
        model=model,
        target=TARGET,
        data=data or None,
        validate=bool(data),
        init_random=not data,
        out=out,
        overrides=(f"validate.test_rows={ROWS}",),  # decides the length of the proof, not the file
    )
    if not out.exists():
        try:
            pipeline.build(request, show=True)
        except EdgebertError as error:
            raise PeerError(str(error)) from error
    bundle = pipeline.Bundle.open(out)
    return [bundle.file(format) for format in bundle.formats]


def _run(command: list[str]) -> None:
    quiet = {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "OLIVE_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    print(" ".join(command), file=sys.stderr)
    try:
        subprocess.run(
            command,
            env={**inherited, **quiet},
            check=True,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT_S,
        )
    except FileNotFoundError as error:
        raise PeerError(f"{command[0]} is not on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"not done after {LIMIT_S} s") from error
    except subprocess.CalledProcessError as error:
        raise PeerError(_reason(error.stderr) or f"ended with {error.returncode}") from error


def _reason(stderr: str) -> str:
    """The last line that names an exception, else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    return (named or lines or [""])[-1][:200]
