"""Builds that are killed, interrupted, repeated, or run beside each other."""

import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgebert.pipeline.bundle import Bundle

SAME = ("manifest.json", "model.onnx", "golden.jsonl", "tokenizer.json", "README.md")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def expect_nothing_half_written(out: Path, cache: Path) -> None:
    """No bundle at `out` but a whole one, nothing beside it, and no partial result in the cache."""
    if out.exists():
        Bundle.open(out)
    assert [entry.name for entry in out.parent.glob(f".{out.name}.*")] == []
    assert [entry.name for entry in cache.glob(".*") if entry.is_dir()] == []


def finished(stderr: str) -> set[str]:
    """Names of the stages that a build has reported as run, not as cached."""
    return {stage_of(line) for line in stderr.splitlines() if line.endswith(" s")}


def stage_of(line: str) -> str:
    """Name of the stage of a line of progress, which ends with `cached` or the time."""
    return line.rstrip().removesuffix(" s").rsplit(maxsplit=1)[0].strip()


def test_killed_at_any_moment(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    """Killed in its first stages, in the middle, at the end, then run to the end."""
    fresh = replace(edgebert, cache=tmp_path / "cache")
    out = tmp_path / "out" / "bundle"
    done: set[str] = set()
    for stop_after in ("", "load", "export onnx", "validate onnx dynamic_wi8c_afp32 on dev"):
        child = fresh.start_build(*quick, "--out", out)
        assert child.stderr is not None
        if not stop_after:
            while not list(fresh.cache.glob(".*.partial")):
                time.sleep(0.01)
        else:
            for line in child.stderr:
                name = stage_of(line)
                if line.rstrip().endswith(" s"):
                    assert name not in done, f"{name} was finished and ran again"
                    done.add(name)
                if name == stop_after:
                    break
        child.kill()
        rest = child.communicate()[1] or ""
        done |= finished(rest)
        assert child.returncode == -signal.SIGKILL
        assert not out.exists()
    end = fresh.build(*quick, "--out", out)
    assert end.returncode == 0, end.stderr
    again = finished(end.stderr) & done
    assert all(name.startswith(("measure", "bundle")) for name in again), again  # timed anew
    expect_nothing_half_written(out, fresh.cache)
    reference = edgebert.build(*quick, "--out", tmp_path / "whole")
    assert reference.returncode == 0, reference.stderr
    for name in SAME:
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize("after", ["", "soon", "load", "export onnx"])
def test_interrupted(edgebert: Any, quick: Any, after: str, tmp_path: Path) -> None:
    fresh = replace(edgebert, cache=tmp_path / "cache")
    out = tmp_path / "bundle"
    child = fresh.start_build(*quick, "--out", out)
    assert child.stderr is not None
    if after == "soon":
        time.sleep(1)  # while torch and transformers are imported
    elif after:
        for line in child.stderr:
            if line.startswith(after):
                break
    else:
        while not list(fresh.cache.glob(".*.partial")):
            time.sleep(0.01)
    time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130, stderr
    assert stdout == ""
    assert stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr
    assert not out.exists()
    expect_nothing_half_written(out, fresh.cache)


def test_interrupted_over_an_older_bundle(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    assert edgebert.build(*quick, "--out", out).returncode == 0
    before = contents(out)
    child = replace(edgebert, cache=tmp_path / "cache").start_build(*quick, "--out", out)
    while not list((tmp_path / "cache").glob(".*.partial")):
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert contents(out) == before


def test_two_caches_give_the_same_bytes(edgebert: Any, built: Any, tmp_path: Path) -> None:
    fresh = replace(edgebert, cache=tmp_path / "cache")
    done = fresh.build("--out", tmp_path / "bundle", "--max-drop", "0.2")
    assert done.returncode == 0, done.stderr
    assert not any(line.endswith("cached") for line in done.stderr.splitlines())
    for name in (*SAME, "model.tflite"):
        assert (tmp_path / "bundle" / name).read_bytes() == (built[0] / name).read_bytes(), name


def test_no_cache_runs_anew_and_gives_the_same_bytes(
    edgebert: Any, quick: Any, tmp_path: Path
) -> None:
    assert edgebert.build(*quick, "--out", tmp_path / "first").returncode == 0
    done = edgebert.build(*quick, "--out", tmp_path / "bundle", "--no-cache")
    assert done.returncode == 0, done.stderr
    assert "export onnx" in finished(done.stderr)
    assert not any(line.endswith("cached") for line in done.stderr.splitlines())
    for name in SAME:
        first = tmp_path / "first" / name
        assert (tmp_path / "bundle" / name).read_bytes() == first.read_bytes(), name


def test_two_builds_at_once(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    """The same build twice and another one beside them, all with one fresh cache."""
    fresh = replace(edgebert, cache=tmp_path / "cache")
    other = ("--set", "quantize.scheme=weight_only_wi8b32")
    children = [
        fresh.start_build(*quick, "--out", tmp_path / "one"),
        fresh.start_build(*quick, "--out", tmp_path / "two"),
        fresh.start_build(*quick, *other, "--out", tmp_path / "three"),
    ]
    errors = [child.communicate(timeout=300)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], errors
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    # The second one waits for the first and takes what that made.
    assert sum(bool(finished(error)) for error in errors[:2]) == 1
    for name in ("one", "two", "three"):
        expect_nothing_half_written(tmp_path / name, fresh.cache)


def test_a_harmed_cache_is_noticed(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert edgebert.build(*quick, "--out", tmp_path / "first").returncode == 0
    shutil.copytree(edgebert.cache, cache)
    for file in cache.rglob("model.onnx"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    done = replace(edgebert, cache=cache).build(*quick, "--out", tmp_path / "bundle")
    assert done.returncode == 0, done.stderr
    assert "export onnx" in finished(done.stderr)
    assert "load" not in finished(done.stderr)
    for name in SAME:
        first = tmp_path / "first" / name
        assert (tmp_path / "bundle" / name).read_bytes() == first.read_bytes(), name
