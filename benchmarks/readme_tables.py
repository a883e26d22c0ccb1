"""Fill the README's tables from real builds.

    uv run python benchmarks/readme_tables.py [output] [targets] [variants]

`output`: what the main job prints, run from an empty cache. `targets`: the shipped ALBERT for every
target, with proof. `variants`: catalogue entries at real size with random weights, for the sizes of
their files; no network is needed for them.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from edgebert import pipeline
from edgebert.pipeline.catalogue import load_catalogue
from edgebert.pipeline.stages.report import Report
from edgebert.targets import Format, target_names

README = Path(__file__).parents[1] / "README.md"
# One of each architecture that is not too large for a laptop; the others only differ in size.
VARIANTS = (
    "TinyBERT_General_4L_312D",
    "all-MiniLM-L6-v2",
    "albert-base-v2",
    "electra-small-discriminator",
    "mobilebert-uncased",
    "distilbert-base-uncased",
    "bert-base-uncased",
)
MAIN_JOB = ("build", "--model", "albert", "--target", "android-arm64")
FORMATS: tuple[Format, ...] = ("onnx", "tflite")


def build(model: str, target: str, out: Path, validate: bool = True) -> Report:
    """The report of one build."""
    request = pipeline.BuildRequest(
        model=model, target=target, out=out, validate=validate, init_random=not validate
    )
    return pipeline.build(request).report


def output_rows(work: Path) -> list[str]:
    """What the main job prints on a machine that has done nothing yet."""
    command = [str(Path(sys.executable).with_name("edgebert")), *MAIN_JOB]
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        cwd=work,
        env={**os.environ, "EDGEBERT_CACHE": str(work / "cache")},
    )
    return ["```", *done.stdout.splitlines(), "```"]


def target_rows(work: Path) -> list[str]:
    """The shipped ALBERT on every target."""
    rows = [
        "| target | file | MB | scheme | accuracy | drop (95 % interval) | same label | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for target in target_names():
        report = build("albert", target, work / target)
        for size in report.sizes:
            drift = report.drift["onnx" if size.file.endswith("onnx") else "tflite"]
            metric = drift.metrics[0]
            verdict = "passed" if report.manifest.passed else "failed"
            rows.append(
                f"| `{target}` | {size.file} | {size.size_mb:.2f} | {size.scheme} "
                f"| {metric.artifact:.4f} | {metric.drop:+.4f} ({metric.drop_low:+.4f} to "
                f"{metric.drop_high:+.4f}) | {100 * (drift.agreement or 0):.2f} % | {verdict} |"
            )
    return rows


def variant_rows(work: Path) -> list[str]:
    """Parameters, and MB of the fp32 checkpoint and of each int8 file."""
    rows = [
        "| variant | parameters | checkpoint MB | model.onnx MB | model.tflite MB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in VARIANTS:
        report = build(name, "android-arm64", work / name, validate=False)
        sizes = {size.file: f"{size.size_mb:.2f}" for size in report.sizes}
        files = " | ".join(sizes[f"model.{format}"] for format in FORMATS)
        entry = load_catalogue()[name]
        rows.append(f"| `{name}` | {entry.parameters:,} | {report.checkpoint_mb:.2f} | {files} |")
    return rows


def main(tables: list[str]) -> None:
    """Replace what is between the markers of each table."""
    make = {"output": output_rows, "targets": target_rows, "variants": variant_rows}
    for name in tables or make:
        with tempfile.TemporaryDirectory() as work:
            rows = "\n".join(make[name](Path(work)))
        text = README.read_text(encoding="utf-8")
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        head, rest = text.split(start)
        tail = rest.split(end)[1]
        README.write_text(head + start + rows + end + tail, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
