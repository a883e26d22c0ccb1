"""Measures model files side by side, all on the runtime and by the runner that edgebert ships."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from benchmarks.arm64_instructions import count
from benchmarks.peers.making import ROWS
from edgebert.calibration import load_data
from edgebert.calibration.dataset import Row
from edgebert.calibration.labels import match_labels
from edgebert.calibration.sample import spread
from edgebert.pipeline.artifact import Checkpoint, sha256_of
from edgebert.pipeline.distances import Distances
from edgebert.pipeline.runners.runner import RUN_PY
from edgebert.pipeline.runtimes.run import Encoded
from edgebert.pipeline.stages.measure import Measurement
from edgebert.pipeline.stages.reference import encode_rows, run_torch
from edgebert.pipeline.stages.validate import run_sessions
from edgebert.targets.errors import EdgebertError

TOKENS = 32
RUNS = 30
CPUS = ("cortex-a76", "cortex-a72")


class Entry(BaseModel):
    """One line of the table: a model file, or why there is none.

    Attributes:
        subject: the model's name.
        maker, version: what made the file.
        format: onnx or tflite; empty where there is no file.
        error: why there is no file, or why it cannot be run, in one line.
        sha256: of the file.
        size_mb: of the file, in MB (1e6 bytes).
        memory_mb: peak memory above the runtime without a model.
        load_ms: from the file to a session that can run, in time of the processor.
        p50_ms: latency likewise; speed: how many times as fast as the fp32 ONNX file.
        cosine_mean, cosine_min: of the logits of the test texts with those of the checkpoint.
        accuracy: on the same texts.
        instructions: of an inference, by emulated processor.
        random_weights: whether there are no answers to compare.
    """

    model_config = ConfigDict(frozen=True)

    subject: str
    maker: str
    version: str
    format: str = ""
    error: str = ""
    sha256: str = ""
    size_mb: float | None = None
    memory_mb: float | None = None
    load_ms: float | None = None
    p50_ms: float | None = None
    speed: float | None = None
    cosine_mean: float | None = None
    cosine_min: float | None = None
    accuracy: float | None = None
    runtime: str = ""
    machine: str = ""
    instructions: dict[str, int] = {}
    random_weights: bool = False


@dataclass(frozen=True)
class Subject:
    """A model that all tools compress.

    Attributes:
        name: in the table.
        model: as `edgebert build --model` takes it.
        data: data set whose test texts are run; empty where the weights are random.
        checkpoint: the same model as a folder.
    """

    name: str
    model: str
    data: str
    checkpoint: Checkpoint

    @cached_property
    def rows(self) -> tuple[list[Row], list[Encoded]]:
        """`ROWS` test texts that fit in `TOKENS` tokens, spread over the labels."""
        rows = load_data(self.data).split("test")
        encoded = encode_rows(self.checkpoint.tokenizer, rows, self.checkpoint.max_length)
        short = [index for index, tokens in enumerate(encoded) if len(tokens.ids) <= TOKENS]
        chosen = [short[i] for i in spread([rows[i] for i in short], ROWS, 0)]
        return [rows[i] for i in chosen], [encoded[i] for i in chosen]

    @cached_property
    def reference(self) -> NDArray[np.float32]:
        """Logits of the checkpoint in fp32, [rows, labels]."""
        return np.stack(run_torch(self.checkpoint, self.rows[1]))

    @cached_property
    def answers(self) -> NDArray[np.int64]:
        """Ids of the right labels, [rows]."""
        checkpoint = self.checkpoint
        return match_labels(self.rows[0], checkpoint.labels, checkpoint.task).values


def fidelity(entry: Entry, file: Path, subject: Subject) -> Entry:
    """The entry with cosine and accuracy."""
    _, encoded = subject.rows
    config, family = subject.checkpoint.config, subject.checkpoint.family
    inputs = [(tokens.ids, tokens.type_ids) for tokens in encoded]
    outputs = run_sessions(file, inputs, 1, int(config.pad_token_id or 0), family.pads_left)
    logits = np.stack(outputs.logits)
    finite = np.isfinite(logits).all(axis=1)
    distances = Distances.of(subject.checkpoint.task, subject.reference, logits, finite)
    assert distances.cosine is not None
    return entry.model_copy(
        update={
            "cosine_mean": float(distances.cosine[finite].mean()) if finite.any() else 0.0,
            "cosine_min": distances.min(distances.cosine),
            "accuracy": float(((logits.argmax(axis=1) == subject.answers) & finite).mean()),
        }
    )


def processor_time(file: Path, fp32: Path) -> Measurement:
    """A file's memory, and its times in turns with the fp32 file, in a process of its own."""
    script = Path(__file__).with_name("processor_time.py")
    words = [str(RUN_PY.parent), str(file), str(fp32), str(TOKENS), str(RUNS)]
    command = [sys.executable, "-P", str(script), *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    local = {"runner": "local", "fp32_p50_ms": second["p50_ms"]}
    return Measurement.model_validate({**first, **local})


def costs(entry: Entry, measurements: Sequence[Measurement]) -> Entry:
    """The entry with time and memory; of several rounds, since a busy machine only adds."""
    speeds = [one.speedup for one in measurements if one.speedup is not None]
    return entry.model_copy(
        update={
            "memory_mb": min(one.memory_mb for one in measurements),
            "load_ms": min(one.load_ms for one in measurements),
            "p50_ms": min(one.p50_ms for one in measurements),
            "speed": median(speeds),
            "runtime": measurements[0].runtime,
            "machine": measurements[0].machine,
        }
    )


def describe(subject: Subject, maker: str, version: str, file: Path) -> Entry:
    """An entry with what the file alone tells, weights that lie beside it included."""
    parts = sorted(file.parent.glob(f"{file.name}*"))
    return Entry(
        subject=subject.name,
        maker=maker,
        version=version,
        format=file.suffix[1:],
        sha256=sha256_of(*parts),
        size_mb=sum(part.stat().st_size for part in parts) / 1e6,
        random_weights=not subject.data,
    )


def measure_all(
    files: dict[Path, Entry], fp32: Path, subject: Subject, rounds: int
) -> dict[Path, Entry]:
    """Cosine, accuracy, time and memory of a subject's files, in turns.

    Args:
        files: entries of `describe` by model file.
        fp32: the ONNX file that latencies are compared with.
        subject: whose files they are.
        rounds: how often each is measured in a process of its own.
    """
    found, times = {}, {}
    for file, entry in files.items():
        try:
            found[file] = fidelity(entry, file, subject) if subject.data else entry
            times[file] = []
        except EdgebertError as error:
            found[file] = entry.model_copy(update={"error": str(error)})
    for _ in range(rounds):
        for file, measured in times.items():
            measured.append(processor_time(file, fp32))
    return {f: costs(e, times[f]) if f in times else e for f, e in found.items()}


def with_instructions(entry: Entry, file: Path, cpus: Sequence[str]) -> Entry:
    """The entry with the counts that it lacks, of the emulated processors.

    Raises:
        MachineError: there is no emulator, or the file does not run there.
    """
    counts = dict(entry.instructions)
    for cpu in cpus:
        if cpu not in counts and not entry.error:
            counts[cpu] = count(file, cpu, TOKENS, runs=1)["instructions"]
    return entry.model_copy(update={"instructions": counts})
