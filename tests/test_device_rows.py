"""Rows on a device: what is kept when it goes, and what is never mixed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest

from edgebert.calibration import Row
from edgebert.pipeline.bundle import MANIFEST, Bundle, describe_file
from edgebert.pipeline.runners import Answer, Job, LostConnection
from edgebert.pipeline.runners.local import local_runner
from edgebert.pipeline.stages import device_rows
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.device_rows import ATTEMPTS, run_on
from edgebert.pipeline.stages.divergence import find_start
from edgebert.targets.errors import InputError, MachineError

ROWS = [{"id": i, "text": f"row {i}"} for i in range(5)]


@dataclass
class Device:
    """A device that answers so many rows on each connection, and then is gone."""

    answers: list[int]
    head: dict[str, str]
    name: str = "ssh:device"
    emulated: bool = False
    asked: list[list[int]] = field(default_factory=list)

    def run(self, job: Job) -> Iterator[Answer]:
        assert job.rows is not None
        rows = [json.loads(line) for line in job.rows.read_text(encoding="utf-8").splitlines()]
        count = self.answers[len(self.asked)]
        self.asked.append([row["id"] for row in rows])
        yield dict(self.head)
        for row in rows[:count]:
            yield {"id": row["id"], "logits": [float(row["id"]), 0.0, 0.0], "truncated": False}
        if count < len(rows):
            raise LostConnection("the cable", self.name)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_rows, "PAUSE_S", 0)


@pytest.fixture
def bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Bundle:
    return write_bundle(tiny_bundle_inputs, tmp_path / "bundle")


def head(of: Bundle, **changes: str) -> dict[str, str]:
    sha256 = describe_file(of.path / MANIFEST).sha256
    first = {"bundle": sha256, "format": "onnx", "runtime": "r 1", "padding": "p", "machine": "m"}
    return {**first, **changes}


def test_goes_on_where_it_stopped(bundle: Bundle, tmp_path: Path) -> None:
    device = Device([2, 0, 9], head(bundle))
    found = run_on(device, bundle, "onnx", ROWS, tmp_path / "growing")
    assert device.asked == [[0, 1, 2, 3, 4], [2, 3, 4], [2, 3, 4]]
    assert [int(row[0]) for row in found.logits] == [0, 1, 2, 3, 4]
    assert (found.runtime, found.machine) == ("r 1", "m (ssh:device)")
    assert not (tmp_path / "growing").exists()


def test_gives_up_and_keeps_what_there_is(bundle: Bundle, tmp_path: Path) -> None:
    growing = tmp_path / "growing"
    device = Device([3, *([0] * ATTEMPTS)], head(bundle))
    with pytest.raises(MachineError, match="the cable") as caught:
        run_on(device, bundle, "onnx", ROWS, growing)
    assert "3 of 5 rows are kept" in caught.value.cure
    growing.write_bytes(growing.read_bytes() + b'{"id": 3, "logi')  # killed while writing
    again = Device([9], head(bundle))
    found = run_on(again, bundle, "onnx", ROWS, growing)
    assert again.asked == [[3, 4]]
    assert len(found.logits) == 5


def test_rows_of_two_machines_are_not_mixed(bundle: Bundle, tmp_path: Path) -> None:
    growing = tmp_path / "growing"
    with pytest.raises(MachineError):
        run_on(Device([2] + [0] * ATTEMPTS, head(bundle)), bundle, "onnx", ROWS, growing)
    before = growing.read_bytes()
    newer = Device([9], head(bundle, runtime="r 2"))
    with pytest.raises(MachineError, match=r"the device changed .*\(runtime\)"):
        run_on(newer, bundle, "onnx", ROWS, growing)
    assert growing.read_bytes() == before


def test_results_of_another_bundle(bundle: Bundle, tmp_path: Path) -> None:
    growing = tmp_path / "growing"
    device = Device([9], head(bundle, bundle="0" * 64))
    with pytest.raises(InputError, match="another bundle than the one that was sent"):
        run_on(device, bundle, "onnx", ROWS, growing)
    assert not growing.exists()
    growing.write_text(json.dumps(head(bundle, bundle="0" * 64)) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="results of another bundle"):
        run_on(Device([9], head(bundle)), bundle, "onnx", ROWS, growing)
    growing.write_text("no file of ours\n", encoding="utf-8")
    with pytest.raises(InputError, match="not a file of answers"):
        run_on(Device([9], head(bundle)), bundle, "onnx", ROWS, growing)


@dataclass(frozen=True)
class Disturbed:
    """This machine, with a fault in one step and all that comes after it."""

    step: str
    name: str = "local, disturbed"
    emulated: bool = False

    def run(self, job: Job) -> Iterator[Answer]:
        for answer in local_runner().run(job):
            outputs = answer.get("outputs")
            if isinstance(outputs, dict):
                names = list(outputs)
                for name in names[names.index(self.step) :]:
                    outputs[name] = (np.asarray(outputs[name]) * 1.01).tolist()
            yield answer


def test_the_layer_where_two_machines_part(bundle: Bundle) -> None:
    rows = [Row("the film was good", "good")]
    assert find_start(local_runner(), bundle, rows) == ""
    proto = onnx.load(bundle.file("onnx"))
    norms = [node for node in proto.graph.node if node.op_type == "LayerNormalization"]
    assert len(norms) > 2
    found = find_start(Disturbed(norms[2].output[0]), bundle, rows)
    assert found.startswith(f"LayerNormalization of {norms[2].input[1]}, use 1 (step ")
    assert found.endswith("off by 1.00%)")
