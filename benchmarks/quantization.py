r"""Every scheme on real models and at real sizes: docs/quantization.md.

    uv run python benchmarks/quantization.py work NAME=CHECKPOINT:DATA ...

The shipped ALBERT, and the catalogue's models with random weights (for size and speed, their
fidelity means nothing), are always in the table; checkpoints with real weights are named, such as
those of results.py:

    uv run python benchmarks/quantization.py work \
        MiniLM-L6=work/on-clinc150/teacher:clinc150 \
        bge-small-zh=work/on-csl_category/teacher:csl_category

One build a model and a format tries every scheme on the dev rows; a build that is there already is
not made again.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from edgebert import pipeline
from edgebert.pipeline.drift import Trial
from edgebert.pipeline.schemes import SCHEMES
from edgebert.pipeline.stages.report import read_report
from edgebert.targets import Format, target_text

PAGE = Path(__file__).parents[1] / "docs" / "quantization.md"
FORMATS: tuple[Format, ...] = ("onnx", "tflite")
RANDOM = ("distilbert-base-uncased", "albert-base-v2", "bert-base-uncased")
TARGET = "raspberry-pi-5"  # the newest opset of the targets that run both formats
ONE_THREAD = (
    "one-thread.toml"  # that target with one thread: two wait for each other when it is busy
)


@dataclass(frozen=True)
class Subject:
    """A model of the table.

    Attributes:
        name: in the table.
        model: as `--model` takes it.
        data: None for random weights.
    """

    name: str
    model: str
    data: str | None

    def request(self, format: Format, out: Path) -> pipeline.BuildRequest:
        """A build that tries every scheme of a format."""
        names = [
            f'"{scheme.name}"'
            for scheme in SCHEMES
            if format in scheme.formats
            and not scheme.trained
            # random weights come without texts to calibrate with
            and not (scheme.calibrated and self.data is None)
        ]
        return pipeline.BuildRequest(
            model=self.model,
            target=str(out.parent / ONE_THREAD),
            data=self.data,
            out=out,
            formats=(format,),
            max_drop=0.5,
            max_size_mb=1000,
            overrides=(
                f"quantize.candidates=[{', '.join(names)}]",
                "quantize.exhaustive=true",
                "validate.dev_rows=300",
                "validate.test_rows=300",
            ),
            validate=self.data is not None,
            init_random=self.data is None,
        )


def rows(subject: Subject, format: Format, trials: tuple[Trial, ...]) -> list[str]:
    """The table's rows of one model and format."""
    found = []
    for trial in trials:
        drift = trial.drift
        if trial.size_mb is None:
            found.append(f"| {subject.name} | {format} | {trial.scheme} | {trial.failure} |||||")
            continue
        fidelity = "| | | "
        if drift is not None:
            fidelity = (
                f"| {drift.cosine_mean:.5f} | {drift.cosine_min:.4f} "
                f"| {100 * (drift.agreement or 0):.1f} % "
            )
        found.append(
            f"| {subject.name} | {format} | {trial.scheme} | {trial.size_mb:.2f} {fidelity}"
            f"| {trial.latency_ratio or 1:.2f} |"
        )
    return found


def write_page(lines: list[str]) -> None:
    """Put the table between its marks."""
    header = [
        "| model | format | scheme | MB | cosine mean | cosine min | same label | speed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- schemes -->\n", "<!-- end of schemes -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    table = "\n".join([*header, *lines])
    PAGE.write_text(f"{before}{begin}{table}\n{end}{after}", encoding="utf-8")


def main(work: Path, named: list[str]) -> None:
    """As the module says; the page is written after each build, so that it can be stopped."""
    subjects = [Subject("shipped ALBERT", "albert", "clinc150")]
    for word in named:
        name, _, rest = word.partition("=")
        model, _, data = rest.rpartition(":")
        subjects.append(Subject(name, model, data))
    subjects += [Subject(name, name, None) for name in RANDOM]
    folder = work / "quantization"
    folder.mkdir(parents=True, exist_ok=True)
    target = re.sub(r"(?m)^threads = .*$", "threads = 1", target_text(TARGET))
    (folder / ONE_THREAD).write_text(target, encoding="utf-8")
    lines: list[str] = []
    for subject in subjects:
        for format in FORMATS:
            out = folder / f"{subject.name.replace(' ', '-')}-{format}"
            if not out.exists():
                pipeline.build(subject.request(format, out), show=True)
            lines += rows(subject, format, read_report(out).trials)
            write_page(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
