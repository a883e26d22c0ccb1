"""Plots of the report as inline SVG; colors and sizes are the page's style sheet's."""

import math
from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup, escape

from edgebert.pipeline.findings import ConfidenceBin, ConfidenceDrift
from edgebert.pipeline.layers import LayerReport

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 46
SQUARE = 260
FAR_APART = 30.0  # the largest over the smallest difference


def layer_plot(reports: Sequence[LayerReport]) -> Markup:
    """Difference from fp32 by layer, a line a model file; logarithmic where they lie far apart."""
    values = [layer.relative for report in reports for layer in report.layers if layer.relative]
    if not values:
        return Markup("")
    place, ticks = _scale(max(min(values), 1e-9), max(values))
    count = max(len(report.layers) for report in reports)

    def x(index: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (index / (count - 1) if count > 1 else 0.5)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(max(place(value), 0.0), 1.0)

    parts = []
    for tick in ticks:
        at = y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" {_both("y", at)}/>')
        label = f"{100 * tick:.3g} %"
        parts.append(f'<text class="tick end" x="{LEFT - 8}" y="{at + 4:.1f}">{label}</text>')
    names = max((report.layers for report in reports), key=len)
    step = max(1, math.ceil(count / 13))
    for index, layer in enumerate(names):
        if index % step == 0 or index == count - 1:
            short = "emb." if index == 0 else str(index)
            parts.append(
                f'<text class="tick middle" x="{x(index):.1f}" y="{HEIGHT - BOTTOM + 18}">'
                f"<title>{escape(layer.name)}</title>{short}</text>"
            )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="tick middle" x="{middle}" y="{HEIGHT - 8}">layer</text>')
    for number, report in enumerate(reports):
        points = [
            (x(index), y(layer.relative), layer)
            for index, layer in enumerate(report.layers)
            if layer.relative is not None
        ]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py, _ in points)
        parts.append(f'<polyline class="series s{number}" points="{line}"/>')
        for px, py, layer in points:
            title = f"{report.format}, {layer.name}: {layer.relative:.3%} ({layer.snr_db:.1f} dB)"
            parts.append(
                f'<circle class="dot s{number}" cx="{px:.1f}" cy="{py:.1f}" r="3.5">'
                f"<title>{escape(title)}</title></circle>"
            )
    return _svg("layers", WIDTH, HEIGHT, "difference from fp32 by layer", parts)


def reliability_plot(confidence: ConfidenceDrift) -> Markup:
    """Share of right answers against confidence, before and after, with the diagonal."""
    left, top, side = 40, 8, SQUARE - 48

    def x(value: float) -> float:
        return left + side * value

    def y(value: float) -> float:
        return top + side * (1 - value)

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<line class="grid" x1="{x(0)}" x2="{x(1)}" {_both("y", y(tick))}/>')
        parts.append(
            f'<text class="tick end" x="{left - 6}" y="{y(tick) + 4:.1f}">{tick:g}</text>'
            f'<text class="tick middle" x="{x(tick):.1f}" y="{top + side + 16}">{tick:g}</text>'
        )
    parts.append(
        f'<line class="axis" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>'
        f'<text class="tick middle" x="{x(0.5)}" y="{SQUARE - 6}">confidence</text>'
    )
    sides: Iterable[tuple[str, str, tuple[ConfidenceBin, ...]]] = (
        ("fp32", "hollow", confidence.reference),
        ("artifact", "s0", confidence.artifact),
    )
    for name, kind, bins in sides:
        most = max(one.items for one in bins) or 1
        for one in bins:
            if one.confidence is None or one.right is None:
                continue
            radius = 2.5 + 5 * math.sqrt(one.items / most)
            title = f"{name}: {one.items} answers of {one.confidence:.2f}, {one.right:.2f} right"
            parts.append(
                f'<circle class="dot {kind}" cx="{x(one.confidence):.1f}" '
                f'cy="{y(one.right):.1f}" r="{radius:.1f}"><title>{title}</title></circle>'
            )
    return _svg("reliability", SQUARE, SQUARE, "share of right answers by confidence", parts)


def _scale(least: float, most: float) -> tuple[Callable[[float], float], list[float]]:
    """From a value to its place from 0 to 1, and the values that get a line."""
    if most / least > FAR_APART:
        low = math.floor(math.log10(least))
        high = max(low + 1, math.ceil(math.log10(most)))
        ticks = [10.0**power for power in range(low, high + 1)]
        return lambda value: (math.log10(max(value, 1e-9)) - low) / (high - low), ticks
    unit = 10.0 ** math.floor(math.log10(most))
    step = next(unit * size for size in (0.2, 0.5, 1.0, 2.0, 5.0) if most / (unit * size) <= 6)
    count = math.ceil(most / step)
    return lambda value: value / (count * step), [step * index for index in range(count + 1)]


def _both(axis: str, value: float) -> str:
    return f'{axis}1="{value:.1f}" {axis}2="{value:.1f}"'


def _svg(kind: str, width: int, height: int, label: str, parts: Sequence[str]) -> Markup:
    body = "\n".join(parts)
    return Markup(  # every text in it is escaped above
        f'<svg class="plot {kind}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}">\n{body}\n</svg>'
    )
