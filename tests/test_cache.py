"""The cache: results by content, whole or not at all, held to their checksums."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from edgebert.pipeline.cache import Cache
from edgebert.targets.errors import InputError


@dataclass(frozen=True)
class Shout:
    """A stage of the tests: writes its setting, and counts its runs in a file beside the cache."""

    word: str
    log: Path

    def __call__(self, out: Path) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{self.word}\n")
        (out / "deep").mkdir()
        (out / "deep" / "word").write_text(self.word, encoding="utf-8")
        (out / "loud").write_text(self.word.upper(), encoding="utf-8")

    def runs(self) -> int:
        return len(self.log.read_text(encoding="utf-8").splitlines())


@pytest.fixture
def stage(tmp_path: Path) -> Shout:
    return Shout("hello", tmp_path / "log")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_stage_runs_once(root: Path, stage: Shout) -> None:
    for _ in range(3):
        cache = Cache(root)
        folder = cache.run(cache.key(stage, "input"), stage)
        assert (folder / "loud").read_text(encoding="utf-8") == "HELLO"
    assert stage.runs() == 1


def test_key_follows_settings_and_inputs(root: Path, stage: Shout) -> None:
    cache = Cache(root)
    keys = {
        cache.key(stage, "input"),
        cache.key(stage, "input", ""),
        cache.key(stage, "other"),
        cache.key(Shout("bye", stage.log), "input"),
    }
    assert len(keys) == 4
    assert cache.key(stage, "input") == Cache(root / "elsewhere").key(stage, "input")


def test_no_cache_runs_anew_but_not_twice(root: Path, stage: Shout) -> None:
    first = Cache(root)
    first.run(first.key(stage), stage)
    again = Cache(root, enabled=False)
    for _ in range(2):
        assert (again.run(again.key(stage), stage) / "loud").exists()
    assert stage.runs() == 2


@pytest.mark.parametrize("harm", ["truncate", "alter", "remove", "add", "mark"])
def test_a_harmed_result_is_made_again(root: Path, stage: Shout, harm: str) -> None:
    cache = Cache(root)
    folder = cache.run(cache.key(stage), stage)
    word = folder / "deep" / "word"
    if harm == "truncate":
        word.write_text("hel", encoding="utf-8")
    elif harm == "alter":  # same size, one bit
        word.write_text("hellm", encoding="utf-8")
    elif harm == "remove":
        word.unlink()
    elif harm == "add":
        (folder / "stray").write_text("", encoding="utf-8")
    else:
        (folder / "stage.json").write_text("{", encoding="utf-8")
    later = Cache(root)
    assert not later.has(later.key(stage))
    assert later.run(later.key(stage), stage) == folder
    assert word.read_text(encoding="utf-8") == "hello"
    assert not (folder / "stray").exists()
    assert stage.runs() == 2


def test_a_failed_stage_leaves_nothing(root: Path, stage: Shout) -> None:
    cache = Cache(root)

    def fail(out: Path) -> None:
        stage(out)
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        cache.run(cache.key(stage), fail)
    assert [entry for entry in root.iterdir() if entry.is_dir()] == []
    assert not cache.has(cache.key(stage))


SLOW_STAGE = """
import sys, time
from pathlib import Path
from edgebert.pipeline.cache import Cache

root, log, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])

def work(out):
    with log.open("a") as stream:
        stream.write("slow\\n")
    (out / "loud").write_text("HELLO")
    time.sleep(seconds)

cache = Cache(root)
assert (cache.run(cache.key("slow"), work) / "loud").read_text() == "HELLO"
"""


def start_slowly(root: Path, stage: Shout, seconds: float) -> "subprocess.Popen[bytes]":
    words = [str(root), str(stage.log), str(seconds)]
    return subprocess.Popen([sys.executable, "-c", SLOW_STAGE, *words])


def test_a_killed_stage_leaves_no_result_and_no_lock(root: Path, stage: Shout) -> None:
    child = start_slowly(root, stage, 600)
    while not list(root.glob(".*.partial/loud")):
        assert child.poll() is None
        time.sleep(0.01)
    child.kill()
    child.wait()
    cache = Cache(root)
    assert not cache.has(cache.key("slow"))
    folder = cache.run(cache.key("slow"), stage)
    assert (folder / "loud").read_text(encoding="utf-8") == "HELLO"
    assert list(root.glob(".*.partial")) == []


def test_builds_at_once_share_one_run(root: Path, stage: Shout) -> None:
    children = [start_slowly(root, stage, 0.5) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    assert stage.runs() == 1


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "Zwischenspeicher 缓存"))
    assert Cache().root == tmp_path / "Zwischenspeicher 缓存"
    monkeypatch.delenv("EDGEBERT_CACHE")
    assert Cache().root.name == "edgebert"


def test_a_root_that_cannot_be_written(tmp_path: Path, stage: Shout) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = Cache(tmp_path / "file")
    with pytest.raises(InputError, match="EDGEBERT_CACHE"):
        cache.run(cache.key(stage), stage)
