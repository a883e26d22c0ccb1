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

import sys
from dataclasses import dataclass
from pathlib import Path

from edgebert import pipeline
from edgebert.pipeline.drift import Trial
from edgebert.pipeline.schemes import SCHEMES
from edgebert.pipeline.stages.report import read_report
from edgebert.targets import Format

PAGE = Path(__file__).parents[1] / "docs" / "quantization.md"
FORMATS: tuple[Format, ...] = ("onnx", "tflite")
RANDOM = ("distilbert-base-uncased", "albert-base-v2", "bert-base-uncased")
TARGET = "raspberry-pi-5"  # the newest opset of the targets that run both formats


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
            target=TARGET,
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


def main(work: Path, named: list[str]) -> None:
    """As the module says."""
    subjects = [Subject("shipped ALBERT", "albert", "clinc150")]
    for word in named:
        name, _, rest = word.partition("=")
        model, _, data = rest.rpartition(":")
        subjects.append(Subject(name, model, data))
    subjects += [Subject(name, name, None) for name in RANDOM]
    lines = [
        "| model | format | scheme | MB | cosine mean | cosine min | same label | speed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for subject in subjects:
        for format in FORMATS:
            out = work / "quantization" / f"{subject.name.replace(' ', '-')}-{format}"
            if not out.exists():
                pipeline.build(subject.request(format, out), show=True)
            lines += rows(subject, format, read_report(out).trials)
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- schemes -->\n", "<!-- end of schemes -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(before + begin + "\n".join(lines) + "\n" + end + after, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
