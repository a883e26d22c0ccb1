"""Writes docs/benchmarks.md and its plot from the measured entries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.making import OURS
from benchmarks.peers.measuring import CPUS, RUNS, TOKENS, Entry

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
PLOT = PAGE.with_name("benchmarks.svg")
BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->"


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        title: its head.
        value: of an entry; None where it was not measured.
        form: how a value is written.
        higher: True where more is better.
        of_answers: True where random weights have no value.
        equal: values nearer than this share of the best are equal, the noise of the measurement.
        within: values nearer than this to the best are equal.
    """

    title: str
    value: Callable[[Entry], float | None]
    form: str
    higher: bool = False
    of_answers: bool = False
    equal: float = 0.0
    within: float = 0.0

    def text(self, entry: Entry) -> str:
        """The value in the table."""
        value = self.value(entry)
        if value is None:
            return "" if self.of_answers and entry.random_weights else "not run"
        return format(value, self.form)

    def best(self, entries: Sequence[Entry]) -> Entry | None:
        """The entry with the best value."""
        have = [entry for entry in entries if self.value(entry) is not None]
        sign = 1 if self.higher else -1
        return max(have, key=lambda entry: sign * (self.value(entry) or 0.0), default=None)

    def is_behind(self, entry: Entry, other: Entry) -> bool:
        """Whether `entry` is worse than `other` by more than noise."""
        mine, theirs = self.value(entry), self.value(other)
        if mine is None or theirs is None:
            return False
        loss = theirs - mine if self.higher else mine - theirs
        return loss > max(self.within, self.equal * abs(theirs))


def _instructions(cpu: str) -> Callable[[Entry], float | None]:
    return lambda entry: entry.instructions[cpu] / 1e6 if cpu in entry.instructions else None


COLUMNS = (
    Column("MB", lambda entry: entry.size_mb, ".2f", equal=0.01),
    Column("memory, MB", lambda entry: entry.memory_mb, ".1f", equal=0.05),
    Column("load, ms", lambda entry: entry.load_ms, ".0f", equal=0.1),
    Column("speed", lambda entry: entry.speed, ".2f", higher=True, equal=0.1),
    Column("cosine", lambda e: e.cosine_mean, ".5f", higher=True, of_answers=True, within=1e-4),
    Column("lowest", lambda e: e.cosine_min, ".4f", higher=True, of_answers=True, within=1e-3),
    Column("accuracy", lambda e: e.accuracy, ".3f", higher=True, of_answers=True, within=0.0151),
    *(Column(f"M instr. {cpu[-3:]}", _instructions(cpu), ".1f", equal=0.01) for cpu in CPUS),
)


def name_of(entry: Entry) -> str:
    """How an entry is named in the plot."""
    return f"{entry.maker} {entry.format}" if entry.maker in (OURS, "fp32") else entry.maker


def table(entries: Sequence[Entry]) -> list[str]:
    """The table of a subject."""
    titles = " | ".join(column.title for column in COLUMNS)
    lines = [f"| made by | file | {titles} |", f"| --- | --- |{' --- |' * len(COLUMNS)}"]
    for entry in entries:
        head = f"| {entry.maker} {entry.version} | {entry.format or 'none'} |"
        if entry.error:
            error = entry.error.replace("|", "\\|")
            lines.append(f"{head} {error} |{' |' * (len(COLUMNS) - 1)}")
        else:
            lines.append(f"{head} {' | '.join(column.text(entry) for column in COLUMNS)} |")
    return lines


def standing(entries: Sequence[Entry]) -> list[str]:
    """Where each of edgebert's files stands against the best peer of its format, by column."""
    ours = [entry for entry in entries if entry.maker == OURS and not entry.error]
    if not ours:
        return []
    heads = " | ".join(f"best {entry.format} of the peers | edgebert" for entry in ours)
    lines = ["", f"| column | {heads} |", f"| --- |{' --- |' * 2 * len(ours)}"]
    for column in COLUMNS:
        if column.of_answers and ours[0].random_weights:
            continue
        cells = []
        for entry in ours:
            peers = [e for e in entries if e.format == entry.format]
            best = column.best([e for e in peers if e.maker not in (OURS, "fp32")])
            if best is None or column.value(entry) is None:
                cells.append("not run |")
                continue
            behind, ahead = column.is_behind(entry, best), column.is_behind(best, entry)
            word = "**behind**" if behind else "first" if ahead else "equal"
            cells.append(f"{column.text(best)}, {best.maker} | {column.text(entry)}, {word}")
        lines.append(f"| {column.title} | {' | '.join(cells)} |")
    return lines


def plot(entries: Sequence[Entry]) -> None:
    """Bars of size, memory, load, speed, cosine error and instructions, a row a subject."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "", "font.size": 8})
    from matplotlib import pyplot

    subjects = list(dict.fromkeys(entry.subject for entry in entries if not entry.error))
    error = Column("1 - cosine", lambda e: e.cosine_mean and 1 - e.cosine_mean, "")
    panels = [*COLUMNS[:4], error, COLUMNS[7]]
    figure, axes = pyplot.subplots(
        len(subjects), len(panels), figsize=(12, 2.4 * len(subjects)), squeeze=False
    )
    for row, subject in zip(axes, subjects, strict=True):
        shown = [e for e in entries if e.subject == subject and not e.error][::-1]
        colors = ["#c2410c" if entry.maker == OURS else "#94a3b8" for entry in shown]
        for index, (axis, column) in enumerate(zip(row, panels, strict=True)):
            if all(column.value(entry) is None for entry in shown):
                axis.set_visible(False)
                continue
            values = [column.value(entry) or 0.0 for entry in shown]
            axis.barh(range(len(shown)), values, color=colors)
            names = [name_of(entry) for entry in shown] if index == 0 else []
            axis.set_yticks(range(len(shown)) if names else [], names)
            axis.set_title(column.title)
            axis.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel(subject)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})


def write_page(entries: Sequence[Entry]) -> None:
    """Put tables and plot into docs/benchmarks.md; the text around them stays."""
    machines = ", ".join(sorted({entry.machine for entry in entries if entry.machine}))
    runtimes = ", ".join(sorted({entry.runtime for entry in entries if entry.runtime}))
    lines = [
        f"Measured at {TOKENS} tokens, batch 1, one thread, {RUNS} runs a round, on {machines},",
        f"with {runtimes}.",
        "",
    ]
    for subject in dict.fromkeys(entry.subject for entry in entries):
        of_it = [entry for entry in entries if entry.subject == subject]
        lines += [f"## {subject}", ""]
        if any(entry.random_weights for entry in of_it):
            lines += [
                "The weights are random: sizes and speeds are real, answers are not.",
                "",
            ]
        lines += [*table(of_it), *standing(of_it), ""]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + "\n".join(lines) + END + after, encoding="utf-8")
    plot(entries)
