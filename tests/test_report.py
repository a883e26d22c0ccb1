"""The report: a page that opens offline and that no text can break, and JUnit XML that is XML."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebert.calibration import Row
from edgebert.pipeline.bundle import Attribution
from edgebert.pipeline.comparison import Conditions, Logits, compute_drift
from edgebert.pipeline.drift import DriftReport, Gate, Trial
from edgebert.pipeline.findings import Disagreement, LabelDrift, MetricDrift
from edgebert.pipeline.gates import Limits, judge
from edgebert.pipeline.layers import LayerDrift, LayerReport, with_added
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.junit import render_junit
from edgebert.pipeline.stages.markdown import render_markdown
from edgebert.pipeline.stages.measure import Measurement
from edgebert.pipeline.stages.page import render_html, visible
from edgebert.pipeline.stages.report import (
    Report,
    build_report,
    int8_instructions,
    read_report,
)
from edgebert.targets import Format
from edgebert.targets.errors import InputError

NASTY = "</table><script>alert('x')</script> \x00\x1b \u202e & \"quoted\""
VOID = {"meta", "br", "rect", "line", "polyline"}


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


def computed_drift(rows: int = 400) -> DriftReport:
    """A drift with everything in it, of texts and labels that try to break the page."""
    random = np.random.default_rng(0)
    names = ["<b>so</b>", "a|b`", "oos", "d"]
    truth = random.integers(0, 4, rows)
    reference = 3 * np.eye(4)[truth] + random.normal(size=(rows, 4))
    artifact = reference + 0.3 * random.normal(size=(rows, 4))
    moved = (truth == 0) & (random.random(rows) < 0.5)
    artifact[moved, 1] += 20
    texts = [f"{NASTY} {'дом ' * 20 if i % 3 else 'house'} {i}" for i in range(rows)]
    index = np.arange(rows)
    return compute_drift(
        "single_label",
        names,
        [Row(text, names[y]) for text, y in zip(texts, truth, strict=True)],
        Logits(reference.astype(np.float32), index, index * 0),
        Logits(artifact.astype(np.float32), index, index * 0),
        Conditions("test", "r", "m", "none", tokens={i: 3 + i % 40 for i in range(rows)}),
    )


def layers(format: Format) -> LayerReport:
    found = [LayerDrift(name="embeddings", snr_db=60.0, cosine_mean=1.0, cosine_min=1.0)]
    for depth in range(1, 13):
        layer = LayerDrift(
            name=f"layer {depth}", snr_db=45.0 - depth, cosine_mean=0.99, cosine_min=0.9
        )
        found.append(layer if depth != 5 else LayerDrift(name="layer 5"))
    return LayerReport(
        format=format,
        scheme="static_wi8c_ai8",
        texts=32,
        tokens=400,
        runtime="onnxruntime 1.32.0",
        layers=with_added(found),
    )


@pytest.fixture
def full(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Report:
    one = computed_drift()
    inputs = replace(
        tiny_bundle_inputs,
        drift={"onnx": one, "tflite": computed_drift(40)},
        gates=(*judge(Limits(), "onnx", one), *judge(Limits(), "tflite", computed_drift(40))),
        trials=(Trial(format="onnx", scheme="fp32", size_mb=4, drift=one, kept=True),),
        measurements=(measurement(1.0),),
        layers=(layers("onnx"), layers("tflite")),
        times_s={"validate onnx fp32 on test": 12.5},
    )
    return build_report(inputs, write_bundle(inputs, tmp_path / "out").manifest)


def test_the_page_shows_everything_that_was_found(full: Report) -> None:
    text = render_html(full)
    page = Page(text)
    assert page.stack == [] and "script" not in page.tags
    assert len(text.encode()) < 500_000
    for said in (
        "above the limit, 95 % sure",
        "1 of 4 labels regressed: <b>so</b>",
        "rows lost",
        "expected calibration error",
        "texts out of scope that are found",
        "Cyrillic",
        "17-32 tokens",
        "most is added by layer",
        "not in this file",
        "confusions that changed",
        "Benjamini-Hochberg",
        "More than chance explains",
    ):
        assert said in page.text, said
    assert text.count("<polyline") == 2 and text.count('class="plot reliability"') == 2
    assert text.count('<th scope="col"') >= text.count("<table>") > 8
    assert text.count("<thead>") == text.count("<table>")  # every table has its headers


def test_a_page_of_nothing_that_changed(full: Report) -> None:
    reference = 3 * np.eye(3, dtype=np.float32)[[0, 1, 2, 1]]
    index = np.arange(4)
    logits = Logits(reference, index, index * 0)
    rows = [Row("text", label) for label in "abcb"]
    conditions = Conditions("test", "r", "m", "none")
    same = compute_drift("single_label", list("abc"), rows, logits, logits, conditions)
    page = Page(render_html(full.model_copy(update={"drift": {"onnx": same}})))
    assert page.stack == [] and "none of 3 labels regressed; 0 changed at all" in page.text


def test_a_page_of_a_regression(full: Report) -> None:
    values = np.linspace(0, 1, 30, dtype=np.float32)[:, None]
    index = np.arange(30)
    sides = [Logits(side, index, index * 0) for side in (values, values**2)]
    rows = [Row(f"{NASTY} {x}", float(x)) for x in values[:, 0]]
    conditions = Conditions("test", "r", "m", "none", tokens={i: 5 + i for i in range(30)})
    drift = compute_drift("regression", ["score"], rows, sides[0], sides[1], conditions)
    page = Page(render_html(full.model_copy(update={"drift": {"onnx": drift}})))
    assert page.stack == [] and "spearman" in page.text and "mae" in page.text


def test_an_unsure_verdict_is_said_on_the_page(full: Report) -> None:
    gates = judge(Limits(max_drop=0.3), "tflite", computed_drift(5))
    assert gates[0].verdict == "cannot tell"
    manifest = full.manifest.model_copy(update={"passed": True})
    page = Page(render_html(full.model_copy(update={"gates": gates, "manifest": manifest})))
    said = "with too few rows to be sure" if gates[0].passed else "cannot tell"
    assert said in page.text and "cannot tell, about" in page.text


def test_no_text_of_private_data_is_in_any_report(
    tiny_bundle_inputs: BundleInputs, tmp_path: Path
) -> None:
    drift = computed_drift()
    inputs = replace(
        tiny_bundle_inputs,
        recipe={"name": "mine", "report": {"texts": False}},
        drift={"onnx": drift},
        trials=(Trial(format="onnx", scheme="fp32", size_mb=4, drift=drift, kept=True),),
    )
    folder = write_bundle(inputs, tmp_path / "out").path
    for name in ("report.json", "report.html", "junit.xml"):
        content = (folder / name).read_text(encoding="utf-8")
        assert "house" not in content and "дом" not in content, name
    assert "The texts were kept out" in Page((folder / "report.html").read_text("utf-8")).text
    report = Report.model_validate_json((folder / "report.json").read_text("utf-8"))
    assert len(report.drift["onnx"].worst) == 20 and not report.has_texts


# Attributes and children of each element: Jenkins' junit-10.xsd, less what is not used here.
JUNIT = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp"},
        {"properties", "testcase"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"classname", "name", "time"}, {"failure", "system-out"}),
    "failure": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}


def test_junit_keeps_to_its_schema(full: Report) -> None:
    root = ElementTree.fromstring(render_junit(full).encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = JUNIT[element.tag]
        assert set(element.keys()) == attributes, element.tag
        assert {child.tag for child in element} <= children
        for name in ("tests", "failures", "errors", "skipped"):
            assert element.get(name, "0").isdigit()
        assert float(element.get("time", "0")) >= 0
    (suite,) = root
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
    case = next(one for one in suite.iter("testcase") if one.get("name") == "drift (onnx)")
    assert case.get("time") == "12.500"
    failure = case.find("failure")
    assert failure is not None and failure.get("type") == "above"
    assert int(suite.get("tests", "")) == len(suite.findall("testcase")) == len(full.gates)


def test_markdown_for_a_comment(full: Report) -> None:
    text = render_markdown(full)
    assert "above the limit with 95 % confidence" in text
    assert "- 1 labels regressed: \\<b\\>so\\</b\\>" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count(" | ") for line in tables if "model." in line} == {8}
    assert "house" not in text and NASTY[:8] not in text


def test_a_report_of_another_version_is_refused(full: Report, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no report"):
        read_report(tmp_path)
    old = full.model_dump(mode="json") | {"schema_version": 1}
    (tmp_path / "report.json").write_text(json.dumps(old), encoding="utf-8")
    with pytest.raises(InputError, match="schema_version"):
        read_report(tmp_path)


def luminance(color: str) -> float:
    """Relative luminance of WCAG 2.2."""
    digits = color.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_of_every_text_color_in_light_dark_and_print(report: Report) -> None:
    themes = re.findall(r":root \{ (.*?) \}", render_html(report))
    assert len(themes) == 3
    for theme in themes:
        colors = dict(re.findall(r"--(\w+): (#\w+);", theme))
        for back in ("back", "card"):
            for name in ("text", "soft", "blue", "green", "red", "amber", "violet"):
                one, other = sorted((luminance(colors[name]), luminance(colors[back])))
                assert (other + 0.05) / (one + 0.05) >= 4.5, (name, back, colors)
