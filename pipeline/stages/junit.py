"""junit.xml: a test case a gate, as CI systems show them.

After the schema of Jenkins' xUnit plugin, which GitLab, Azure and GitHub's reporters read as well.
"""

from importlib import metadata
from xml.etree import ElementTree

from edgebert.pipeline.drift import Gate
from edgebert.pipeline.stages.page import visible
from edgebert.pipeline.stages.report import Report


def render_junit(report: Report) -> str:
    """The text of junit.xml."""
    manifest = report.manifest
    name = f"edgebert {manifest.model} {manifest.target.name}"
    times = [_seconds(report, gate) for gate in report.gates]
    counts = {
        "tests": str(len(report.gates)),
        "failures": str(sum(not gate.passed for gate in report.gates)),
        "errors": "0",
        "time": f"{sum(times):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": name, **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, "skipped": "0", **counts})
    suite.set("timestamp", report.created.removesuffix("+00:00"))
    properties = ElementTree.SubElement(suite, "properties")
    facts = {
        "model": manifest.model,
        "target": manifest.target.name,
        "edgebert": metadata.version("edgebert"),
        **{model.file: model.scheme for model in manifest.models.values()},
    }
    for key, value in facts.items():
        ElementTree.SubElement(properties, "property", {"name": key, "value": visible(value)})
    for gate, seconds in zip(report.gates, times, strict=True):
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {
                "classname": f"edgebert.{manifest.target.name}",
                "name": visible(gate.name),
                "time": f"{seconds:.3f}",
            },
        )
        message = visible(gate.message, limit=1000)
        if gate.passed:
            ElementTree.SubElement(case, "system-out").text = message
        else:
            attributes = {"message": message, "type": gate.verdict or "limit"}
            ElementTree.SubElement(case, "failure", attributes).text = message
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _seconds(report: Report, gate: Gate) -> float:
    """How long it took to find out what the gate judges; 0 where that was not timed."""
    for format, model in report.manifest.models.items():
        stages = {
            f"drift ({format})": f"validate {format} {model.scheme} on test",
            f"latency ({format})": f"measure {format} {model.scheme}",
        }
        if gate.name in stages:
            return report.times_s.get(stages[gate.name], 0.0)
    return 0.0
