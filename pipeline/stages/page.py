"""report.html: one file, no scripts, nothing loaded from elsewhere, every text escaped."""

from collections.abc import Iterable, Mapping
from importlib import metadata, resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from edgebert.pipeline.findings import MetricDrift
from edgebert.pipeline.stages.plots import layer_plot, reliability_plot
from edgebert.pipeline.stages.report import Report

LABELS_SHOWN = 30  # in the open; a page of 151 labels is read by nobody


def render_html(report: Report) -> str:
    """The page."""
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "visible": visible,
        "number": number,
        "percent": percent,
        "mb": lambda x: f"{x:.2f} MB",
    }
    judged = {gate.name: gate.limit for gate in report.gates}
    return environment.get_template("report.html.j2").render(
        r=report,
        limits={
            f: judged.get(f"drift ({f})", report.manifest.target.max_drop) for f in report.drift
        },
        m=report.manifest,
        edgebert=metadata.version("edgebert"),
        span=span,
        layer_plot=layer_plot,
        reliability_plot=reliability_plot,
        labels_shown=LABELS_SHOWN,
    )


def _template(name: str) -> str | None:
    file = resources.files("edgebert.pipeline").joinpath("templates", name)
    return file.read_text(encoding="utf-8") if file.is_file() else None


def visible(text: str, limit: int = 300) -> str:
    """A text as people can read it, cut; control characters, which XML lacks, as pictures."""
    pictures = {code: 0x2400 + code for code in range(32)} | {127: 0x2421}
    pictures |= {
        code: 0xFFFD for code in (*range(128, 160), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
    }
    shown = text.translate(pictures)
    return shown if len(shown) <= limit else f"{shown[:limit]}… ({len(text)} characters)"


def number(value: float | None, digits: int = 4) -> str:
    """A number in fixed notation, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"  # noqa: RUF001


def percent(value: float | None, digits: int = 2) -> str:
    """A fraction as a percentage, a dash where there is none."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"  # noqa: RUF001


def span(metrics: Iterable[MetricDrift], limit: float = 0.0) -> Mapping[str, Any]:
    """Where a plot of drops begins and how wide it is: all intervals, zero and the limit."""
    ends = [0.0, limit, *(x for m in metrics for x in (m.drop, m.drop_low, m.drop_high))]
    margin = 0.08 * (max(ends) - min(ends) or 1.0)
    return {"low": min(ends) - margin, "width": max(ends) - min(ends) + 2 * margin}
