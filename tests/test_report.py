"""The report: a page that opens offline and that no text can break, and JUnit XML that is XML."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebert.pipeline.bundle import Attribution
from edgebert.pipeline.drift import DriftReport, Gate, Trial
from edgebert.pipeline.findings import Disagreement, LabelDrift, MetricDrift
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.junit import render_junit
from edgebert.pipeline.stages.measure import Measurement
from edgebert.pipeline.stages.page import render_html, visible
from edgebert.pipeline.stages.report import Report, build_report, int8_instructions

NASTY = "</table><script>alert('x')</script> \x00\x1b \u202e & \"quoted\""
VOID = {"meta", "br", "rect", "line", "circle", "polyline"}


class Page(HTMLParser):
    """Checks that elements nest and collects what the page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.stack.append(tag)
        for name, value in attrs:
            assert name not in ("src", "href", "onclick", "onload"), (tag, name, value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] != "style":
            self.text += data


def drift(name: str = "accuracy") -> DriftReport:
    metric = MetricDrift(
        name=name,
        reference=0.951,
        reference_low=0.945,
        reference_high=0.956,
        artifact=0.948,
        artifact_low=0.942,
        artifact_high=0.954,
        drop=0.003,
        drop_low=-0.001,
        drop_high=0.006,
        drop_at_least=0,
        drop_at_most=0.005,
        method="score",
    )
    label = LabelDrift(
        label="<b>so</b>",
        rows=30,
        reference_recall=0.9,
        reference_recall_low=0.74,
        reference_recall_high=0.97,
        artifact_recall=0.8,
        artifact_recall_low=0.63,
        artifact_recall_high=0.9,
        lost=4,
        won=1,
        p_adjusted=0.19,
        regressed=False,
        reference_f1=0.9,
        artifact_f1=0.85,
    )
    worst = Disagreement(text=NASTY, expected="bad", reference="bad", artifact="good", kl=0.3)
    return DriftReport(
        task="single_label",
        split="test",
        rows=5500,
        truncated=3,
        runtime="onnxruntime 1.32.0",
        machine="x86_64",
        padding="none, batch 1",
        metrics=(metric, metric.model_copy(update={"name": "macro F1"})),
        agreement=0.987,
        kl_mean=0.001,
        kl_max=0.3,
        cosine_mean=0.999,
        cosine_min=0.98,
        max_abs_logit=0.4,
        labels=(label,),
        worst=(worst,),
        notes=("one row is 0.02 points",),
    )


def measurement(p50_ms: float) -> Measurement:
    return Measurement(
        file="model.onnx",
        runner="local",
        machine="x86_64",
        runtime="onnxruntime 1.32.0",
        tokens=32,
        threads=1,
        warmups=5,
        runs=50,
        load_ms=30,
        first_run_ms=3,
        p50_ms=p50_ms,
        p90_ms=p50_ms,
        p99_ms=p50_ms,
        bare_mb=50,
        peak_mb=70,
        fp32_p50_ms=2,
    )


@pytest.fixture
def report(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Report:
    failed = Gate(
        name="size (onnx)",
        value=4.3,
        limit=4,
        unit="MB",
        passed=False,
        message="size (onnx): 4.30 MB, limit 4.00 MB \x00",
    )
    passed = failed.model_copy(
        update={
            "name": "drift (onnx)",
            "limit": 0.01,
            "passed": True,
            "message": "drift (onnx): 0.0030 < 0.01",
        }
    )
    shipped = Trial(
        format="onnx", scheme="fp32", size_mb=4, latency_ratio=0.9, drift=drift(), kept=True
    )
    broken = Trial(format="tflite", scheme="static_wi8c_ai8", failure="needs calibration texts")
    inputs = replace(
        tiny_bundle_inputs,
        drift={"onnx": drift(), "tflite": drift()},
        gates=(passed, failed),
        trials=(shipped, broken),
        measurements=(measurement(4.0),),
        attributions=(Attribution(what="CLINC150", license="CC-BY-3.0"),),
        command="edgebert build --model albert --target android-arm64",
        notes=("a note",),
    )
    return build_report(inputs, write_bundle(inputs, tmp_path / "out").manifest)


def test_page(report: Report) -> None:
    text = render_html(report)
    page = Page(text)
    assert page.stack == []
    assert "script" not in page.tags  # nor from a text
    assert NASTY.replace("\x00", "\u2400").replace("\x1b", "\u241b") in page.text
    assert not re.search(r"https?://|@import|url\(", text)  # nothing is loaded
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    assert page.text.index("Failed") < page.text.index("Drift")  # the verdict comes first
    for said in (
        "1 of 2 gates do not hold",
        "size (onnx): 4.30 MB, limit 4.00 MB",
        "0.9480",
        "-0.0010 to 0.0060",
        "98.70 %",
        "3 of them cut",
        "one row is 0.02 points",
        "needs calibration texts",
        "is slower than the fp32 file",
        "0.50×",  # noqa: RUF001
        "<b>so</b>",
        "CC-BY-3.0",
        "edgebert build --model albert --target android-arm64",
    ):
        assert said in page.text, said


def test_interval_is_drawn_to_scale(report: Report) -> None:
    plot = render_html(report).split('<svg class="interval"')[1].split("</svg>")[0]
    lines = dict(re.findall(r'class="(\w+)" x1="([\d.]+)"', plot))
    ends = dict(re.findall(r'class="(\w+)" x1="[\d.]+" x2="([\d.]+)"', plot))
    per_unit = (float(lines["limit"]) - float(lines["axis"])) / 0.01
    assert float(lines["point"]) - float(lines["axis"]) == pytest.approx(per_unit * 0.003, abs=0.02)
    width = float(ends["whisker"]) - float(lines["whisker"])
    assert width == pytest.approx(per_unit * 0.007, abs=0.02)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"passed": None}, "No proof"),
        ({"passed": True}, "✓ Passed"),
        ({"passed": True, "random_weights": True}, "Accuracy and drift mean nothing"),
    ],
)
def test_verdicts(report: Report, changes: dict[str, bool | None], said: str) -> None:
    manifest = report.manifest.model_copy(update=changes)
    bare = report.model_copy(
        update={"manifest": manifest, "drift": {}, "gates": (), "trials": (), "measurements": ()}
    )
    page = Page(render_html(bare))
    assert said in page.text
    assert page.stack == []


def test_junit(report: Report) -> None:
    root = ElementTree.fromstring(render_junit(report).encode())
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    failure = cases["size (onnx)"].find("failure")
    assert failure is not None
    assert failure.get("message") == "size (onnx): 4.30 MB, limit 4.00 MB \u2400"
    assert cases["drift (onnx)"].find("failure") is None


def test_json_round_trips(report: Report) -> None:
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_speed_notes() -> None:
    assert measurement(4.0).speedup == 0.5
    assert measurement(4.0).memory_mb == 20
    assert measurement(1.0).model_copy(update={"fp32_p50_ms": None}).speedup is None


def test_host_instructions() -> None:
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    assert int8_instructions() in (*flags, "none of its own")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_is_xml(text: str) -> None:
    element = ElementTree.Element("a", {"b": visible(text)})
    parsed = ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8"))
    assert parsed.get("b") == visible(text)
