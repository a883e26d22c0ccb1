"""Doctor: what a machine has and lacks, each lack with a cure, and its repairs."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from edgebert.pipeline import doctor
from edgebert.pipeline.cache import Cache
from edgebert.pipeline.cli import main
from edgebert.targets.errors import InputError


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_this_machine_can_build() -> None:
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0, done.stdout
    for part in ("python", "onnxruntime", "litert-torch", "nncf", "GB free", "int8"):
        assert part in done.stdout
    checks = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)
    assert {"python", "libraries", "memory", "cache"} <= {check["name"] for check in checks}
    assert all(check["passed"] for check in checks if check["needed"])


def test_every_lack_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "BUILD_DISK_GB", 1e6)
    monkeypatch.setattr(doctor, "BUILD_MEMORY_GB", 1e6)
    monkeypatch.setattr(doctor, "LIBRARIES", ("torch", "not-there-at-all"))
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 3
    lacking = [check for check in doctor.examine() if not check.passed]
    assert {check.name for check in lacking} >= {"libraries", "memory", "cache"}
    for check in lacking:
        assert check.cure
        assert check.cure in done.stdout
    assert "pip install not-there-at-all" in done.stdout


def test_fix_clears_the_cache_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    cache = Cache()
    made = cache.run(cache.key("a stage"), lambda out: (out / "file").write_text("x"))
    killed = own_cache / f".{made.name}.{2**22 + 1}.partial"
    killed.mkdir()
    (own_cache / "thesis.docx").write_text("ten years of work", encoding="utf-8")
    (own_cache / "photos").mkdir()
    assert doctor.fix("cache").passed  # nothing was wrong, nothing was removed
    assert made.exists()
    monkeypatch.setattr(doctor, "BUILD_DISK_GB", 1e6)
    assert not doctor.fix("cache").passed
    assert {entry.name for entry in own_cache.iterdir()} == {"thesis.docx", "photos"}


def test_what_has_no_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="known: python"):
        doctor.fix("internet")
    monkeypatch.setattr(doctor, "BUILD_MEMORY_GB", 1e6)
    with pytest.raises(InputError, match="GB"):
        doctor.fix("memory")


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "file"))
    check: Any = next(each for each in doctor.examine() if each.name == "cache")
    assert not check.passed
    assert "EDGEBERT_CACHE" in check.cure
