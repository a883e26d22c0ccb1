"""Measure: latency, load time and peak memory of a model file, in a process of its own."""

from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict

from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.runners import Job, Runner, find_runner
from edgebert.targets import Format


class Measurement(BaseModel):
    """What a model file costs on one machine; a busy one gives too high numbers, never too low.

    Attributes:
        file: name of the model file.
        runner, machine, runtime: where and on what it ran.
        tokens, threads: of an inference, batch 1.
        warmups: runs before the measured ones, the first of all not counted.
        runs: measured runs.
        load_ms: from the file to a session that can run.
        first_run_ms: the first inference.
        p50_ms, p90_ms, p99_ms: latency of the measured runs.
        bare_mb: resident memory with the runtime started on a model of one operator, and no model
            of ours, in MB (1e6 bytes); None where the device does not tell.
        peak_mb: highest resident memory, likewise.
        fp32_p50_ms: latency of the fp32 file, measured in turns with this one; None without one.
        emulated: True where an emulator ran it, whose times say nothing of the device.
        golden_rows, golden_max_abs: golden texts that a phone ran before it was measured, and its
            largest difference of a logit from what they are to give.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    runner: str
    machine: str
    runtime: str
    tokens: int
    threads: int
    warmups: int
    runs: int
    load_ms: float
    first_run_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    bare_mb: float | None
    peak_mb: float | None
    fp32_p50_ms: float | None = None
    emulated: bool = False
    golden_rows: int | None = None
    golden_max_abs: float | None = None

    def text(self) -> str:
        """For people."""
        return (
            f"{self.file:<13} {self.tokens} tokens, threads {self.threads}: "
            f"p50 {self.p50_ms:.2f} ms, p90 {self.p90_ms:.2f} ms, p99 {self.p99_ms:.2f} ms, "
            f"load {self.load_ms:.0f} ms"
            + (f", {self.memory_mb:.1f} MB above the runtime" if self.memory_mb is not None else "")
            + f"\n{'':<13} {self.runtime} on {self.machine}"
            + f" ({self.runner})" * (self.runner != "local")
            + "; the times are the emulator's, not the device's" * self.emulated
            + (f"\n{'':<13} {self.drift_text}" if self.golden_rows else "")
        )

    @property
    def drift_text(self) -> str:
        """How far a phone is from the golden texts."""
        return (
            f"{self.golden_rows} golden texts passed there, "
            f"largest difference of a logit {self.golden_max_abs:.3g}"
        )

    @property
    def memory_mb(self) -> float | None:
        """Peak memory above the bare runtime; None where the device does not tell."""
        if self.peak_mb is None or self.bare_mb is None:
            return None
        return max(0.0, self.peak_mb - self.bare_mb)

    @property
    def speedup(self) -> float | None:
        """How many times faster than the fp32 file; below 1 it is slower."""
        return None if self.fp32_p50_ms is None else self.fp32_p50_ms / self.p50_ms


def measure(
    file: Path,
    fp32_file: Path | None = None,
    tokens: int = 32,
    threads: int = 1,
    runs: int = 50,
    warmups: int = 5,
    runner: Runner | None = None,
) -> Measurement:
    """Measure a model file, and the fp32 file in turns with it.

    Args:
        file: model.onnx or model.tflite.
        fp32_file: what `speedup` compares with.
        tokens: length of the row; a TFLite file pads it to its next length.
        threads: threads of an inference.
        runs: measured runs.
        warmups: runs before them.
        runner: where; by default on this machine.

    Raises:
        InputError: the file cannot be run.
        MachineError: the machine lacks the runtime or the memory.
    """
    runner = runner or find_runner("local")
    files = [file] if fp32_file is None else [file, fp32_file]
    job = Job(
        "measure", models=tuple(files), tokens=tokens, threads=threads, runs=runs, warmups=warmups
    )
    first, *others = runner.run(job)
    fp32_p50_ms = cast("float", others[0]["p50_ms"]) if others else None
    return Measurement.model_validate({**first, "runner": runner.name, "fp32_p50_ms": fp32_p50_ms})


def measure_bundle(
    bundle: Bundle,
    runner: str = "local",
    threads: int | None = None,
    runs: int = 50,
    formats: tuple[Format, ...] = (),
) -> tuple[Measurement, ...]:
    """Measure model files of a bundle, by default all, at the target's shortest length.

    Raises:
        InputError: an unknown runner, or a file that cannot be run.
        MachineError: the machine lacks the runtime or the memory.
    """
    target, place = bundle.manifest.target, find_runner(runner)
    found = []
    for format in formats or bundle.formats:
        job = Job(
            "measure",
            bundle.path,
            format,
            threads=threads or target.threads,
            tokens=target.lengths[0],
            runs=runs,
        )
        (answer,) = place.run(job)
        said = {"runner": place.name, "emulated": place.emulated}
        found.append(Measurement.model_validate({**answer, **said}))
    return tuple(found)
