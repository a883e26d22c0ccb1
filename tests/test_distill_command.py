"""`edgebert distill`: what it leaves, what it refuses, and that no interruption changes it."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import edgebert.pipeline
from edgebert.calibration.dataset import Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.distill_request import RECORD, DistillRequest
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.stages.load import load_model
from edgebert.targets.errors import InputError

TinyCheckpoint = Callable[..., Checkpoint]
LABELS = ("bad", "so so", "good")
WORDS = "film was long book music and weather in play not new"


def make_rows(count: int, seed: int = 0) -> tuple[Row, ...]:
    """Texts whose label is decided by one word."""
    draw = random.Random(seed)
    rows = []
    for index in range(count):
        label = LABELS[index % 3]
        words = draw.choices(WORDS.split(), k=draw.randint(2, 9))
        words.insert(draw.randrange(len(words)), {"so so": "card"}.get(label, label))
        rows.append(Row(" ".join(words), label))
    return tuple(rows)


def write_data(folder: Path, rows: int = 300) -> Path:
    folder.mkdir()
    for split, count in (("train", rows), ("dev", 30), ("test", 60)):
        texts = make_rows(count, len(split))
        lines = [json.dumps({"text": row.text, "label": row.label}) for row in texts]
        (folder / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def teacher(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> Checkpoint:
    return tiny_checkpoint("bert", tmp_path / "teacher", LABELS, num_hidden_layers=4)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def request(tmp_path: Path, teacher: Checkpoint, **fields: Any) -> DistillRequest:
    data = tmp_path / "data"
    if not data.exists():
        write_data(data)
    asked = DistillRequest(str(teacher.path), "distilbert-like", str(data), tmp_path / "out")
    return replace(asked, **fields)


def test_a_fine_tuned_teacher_and_its_student_are_good(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, cache: Path
) -> None:
    encoder = tiny_checkpoint("bert", tmp_path / "encoder", num_hidden_layers=4)
    tensors = load_file(encoder.path / "model.safetensors")
    headless = {name: tensor for name, tensor in tensors.items() if "classifier" not in name}
    save_file(headless, encoder.path / "model.safetensors", metadata={"format": "pt"})
    unlabeled = tmp_path / "more.txt"
    unlabeled.write_text("\n".join(row.text for row in make_rows(60, 9)), encoding="utf-8")
    asked = request(
        tmp_path,
        encoder,
        unlabeled=str(unlabeled),
        overrides=("epochs=8", "learning_rate=2e-3", "batch_size=16"),
    )
    with pytest.raises(InputError, match="no trained classifier head") as caught:
        edgebert.pipeline.distill(asked)
    assert "--finetune-teacher" in caught.value.cure
    result = edgebert.pipeline.distill(replace(asked, finetune_teacher=True))
    assert result.comparison is not None
    accuracy = result.comparison.metrics[0]
    assert (accuracy.name, result.comparison.rows) == ("accuracy", 60)
    assert accuracy.reference > 0.9
    assert accuracy.artifact > 0.9
    assert result.student_parameters < result.teacher_parameters
    record = json.loads((tmp_path / "out" / RECORD).read_text(encoding="utf-8"))
    assert record["data"]["unlabeled"] == 60
    made = Checkpoint(tmp_path / "out", "out")
    assert made.labels == tuple(sorted(LABELS))
    assert load_model(made).config.num_hidden_layers == 2
    assert list((cache / "training").iterdir()) == []


def test_a_killed_run_resumes_and_ends_with_the_same_weights(
    teacher: Checkpoint, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["--set", "batch_size=8", "--set", "save_steps=15", "--epochs", "8", "--seed", "3"]
    write_data(tmp_path / "data")
    asked = [
        *("distill", "--teacher", str(teacher.path), "--student", "albert-like"),
        *("--data", str(tmp_path / "data"), "--out", str(tmp_path / "out"), *settings),
    ]
    code = "from edgebert.pipeline.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *asked],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not list(cache.glob("training/*/checkpoint-*/trainer_state.json")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    (work,) = (cache / "training").iterdir()
    (work / "checkpoint-9999").mkdir()  # one cut short: removed, not resumed from
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = ("batch_size=8", "save_steps=15", "epochs=8.0", "seed=3")
    resumed = request(tmp_path, teacher, student="albert-like", overrides=options)
    steps: list[int] = []
    monkeypatch.setattr(Progress, "training", recording(steps))
    edgebert.pipeline.distill(resumed)
    assert steps[0] > 15  # it did not begin anew
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "other"))
    edgebert.pipeline.distill(replace(resumed, out=tmp_path / "unbroken"))
    ours, theirs = (
        load_file(tmp_path / name / "model.safetensors") for name in ("out", "unbroken")
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def recording(steps: list[int]) -> Any:
    @contextmanager
    def training(progress: Any, name: str, cached: bool = False) -> Any:
        yield lambda step, total, loss: steps.append(step)

    return training


def test_nothing_of_the_users_is_overwritten(teacher: Checkpoint, tmp_path: Path) -> None:
    asked = request(tmp_path, teacher)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="no distillation put there"):
        edgebert.pipeline.distill(asked)
    with pytest.raises(InputError, match="no distillation put there"):
        edgebert.pipeline.distill(replace(asked, out=teacher.path))
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"
    (teacher.path / RECORD).write_text("{}")
    with pytest.raises(InputError, match="would replace what it is made of"):
        edgebert.pipeline.distill(replace(asked, out=teacher.path))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("alpa=1", "no setting 'alpa'\nsettings: alpha"),
        ("alpha", "cannot read --set alpha"),
        ("alpha=2", "alpha: Input should be less than or equal to 1"),
        ("batch_size=many", "batch_size: Input should be a valid integer"),
        ("layer_map=[[1, 99]]", "layer_map has the pair \\[1, 99\\]"),
        ("layer_map=first", "layer_map: Input should be"),
    ],
)
def test_settings_are_checked(
    teacher: Checkpoint, tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        edgebert.pipeline.distill(request(tmp_path, teacher, overrides=(override,)))
    assert not (tmp_path / "out").exists()


def test_rows_without_labels_are_refused_where_labels_are_needed(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    asked = request(tmp_path, teacher)
    (tmp_path / "data" / "train.jsonl").write_text('{"text": "no label here"}\n')
    with pytest.raises(InputError, match="no column 'label'"):
        edgebert.pipeline.distill(asked)


def test_the_command_prints_one_document(
    teacher: Checkpoint, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from edgebert.pipeline.cli import main

    out = tmp_path / "out"
    asked = [
        *("distill", "--teacher", str(teacher.path), "--student", "distilbert-like", "--json"),
        *("--data", str(write_data(tmp_path / "data", 60)), "--out", str(out), "--epochs", "1"),
    ]
    main(asked)
    printed = capfd.readouterr()
    found = json.loads(printed.out)
    assert (found["path"], found["comparison"]["metrics"][0]["name"]) == (str(out), "accuracy")
    lines = [line.split("  ")[0] for line in printed.err.splitlines() if line.endswith(" s")]
    assert lines[-2:] == ["distill", "compare teacher and student"]
    with pytest.raises(SystemExit) as stopped:
        main([*asked, "--set", "alpha=2"])
    assert stopped.value.code == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: alpha: Input should be less than or equal to 1")
    assert json.loads((out / RECORD).read_text(encoding="utf-8"))["settings"]["alpha"] == 0.5
