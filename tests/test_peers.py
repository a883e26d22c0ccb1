"""The environments of benchmarks/peers can be made again, anywhere."""

import re
from pathlib import Path

import pytest

PEERS = sorted((Path(__file__).parents[1] / "benchmarks" / "peers").glob("*/make.py"))
PIN = re.compile(r"[a-z0-9][a-z0-9._-]*==[\w.+!]+")


@pytest.mark.parametrize("maker", PEERS, ids=lambda file: file.parent.name)
def test_lock_pins_what_is_required(maker: Path) -> None:
    lock = maker.with_name("requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lock if not PIN.fullmatch(line)] == []  # no ranges, no addresses
    pinned = {line.split("==")[0] for line in lock}
    assert maker.parent.name in pinned  # the table names its version
    for line in maker.with_name("requirements.in").read_text(encoding="utf-8").splitlines():
        assert re.split(r"[\[=<> ]", line)[0] in pinned


def test_makers_are_found() -> None:
    assert len(PEERS) == 5
