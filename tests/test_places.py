"""Builds in strange places: paths in any script, read-only sources, full disks."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgebert.pipeline.bundle import Bundle


def expect_nothing_half_written(out: Path, cache: Path) -> None:
    """No bundle at `out` but a whole one, nothing beside it, and no partial result in the cache."""
    if out.exists():
        Bundle.open(out)
    assert [entry.name for entry in out.parent.glob(f".{out.name}.*")] == []
    assert [entry.name for entry in cache.glob(".*") if entry.is_dir()] == []


def test_paths_in_any_script(edgebert: Any, tmp_path: Path) -> None:
    home = tmp_path / "Мои файлы 文件 größe"
    model, data = home / "модель 模型", home / "данные 数据"
    shutil.copytree(edgebert.model, model)
    shutil.copytree(edgebert.data, data)
    there = replace(
        edgebert, folder=home, cache=home / "Zwischenspeicher 缓存", env={"LC_ALL": "C"}
    )
    out = home / "Bündel 包"
    words = ("--set", "quantize.scheme=dynamic_wi8c_afp32", "--max-drop", "0.5", "--out", out)
    done = there("build", "--model", model, "--data", data, "--target", "android-arm64", *words)
    assert done.returncode == 0, done.stderr
    assert str(out) in done.stdout
    assert Bundle.open(out).manifest.model == model.name
    answer = there("predict", out, "будильник 闹钟", "--json")
    assert json.loads(answer.stdout)[0]["text"] == "будильник 闹钟"


def test_read_only_source(edgebert: Any, quick: Any, tmp_path: Path) -> None:
    """A folder that not even root can write: mounted read-only."""
    source = tmp_path / "read-only"
    source.mkdir()
    mount = ["mount", "--bind", "-o", "ro", str(edgebert.folder), str(source)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting needs privileges that are not here")
    try:
        with pytest.raises(OSError, match=r"[Rr]ead-only"):
            (source / "tiny" / "x").write_text("")
        fresh = replace(edgebert, folder=tmp_path, cache=tmp_path / "cache")
        words = ("--target", "android-arm64", *quick, "--out", tmp_path / "out")
        given = ("build", "--model", source / "tiny", "--data", source / "data")
        assert fresh(*given, *words).returncode == 0
        done = fresh(*given, *words, "--out", source / "out")
        edgebert.expect_error(done, 2, str(source), "--out")
    finally:
        subprocess.run(["umount", str(source)], check=True)


@pytest.mark.parametrize(
    ("full", "size"),
    [("cache", "16k"), ("cache", "250k"), ("cache", "500k"), ("out", "16k"), ("out", "150k")],
)
def test_full_disk(
    edgebert: Any, quick: Any, built: Any, full: str, size: str, tmp_path: Path
) -> None:
    """A file system of its own that is too small, for the cache or for the bundle."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting needs privileges that are not here")
    try:
        out, cache = tmp_path / "bundle", edgebert.cache
        if full == "out":
            out = disk / "bundle"
        else:
            cache = disk / "cache"
        done = replace(edgebert, cache=cache).build(*quick, "--out", out)
        edgebert.expect_error(done, 3, "disk is full", str(disk))
        assert "EDGEBERT_CACHE" in done.stderr if full == "cache" else "--out" in done.stderr
        assert not out.exists()
        expect_nothing_half_written(out, cache)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
