"""How far two machines differ on the same model file and the same texts, and whether that may be.

int8 sums are exact everywhere, but the fp32 arithmetic around them is not: where its last bit flips
a rounding, a dynamic scheme moves by a whole step. x86 without VNNI also saturates its uint8 x int8
products in 16 bits, which is another computation altogether.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from edgebert.pipeline.artifact import Task
from edgebert.pipeline.drift import Gate
from edgebert.targets import Format

MIN_AGREEMENT = 0.995  # share of the same labels
MIN_COSINE = 0.995  # of the logits of every single text
WORST = 10


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)


class TextDifference(_Result):
    """A text on which two machines differ: what each says, and the cosine of the logits."""

    text: str
    here: str
    there: str
    cosine: float | None
    max_abs: float | None


class MachineDrift(_Result):
    """One model file on another machine, against this one.

    Attributes:
        format: of the file.
        runner: the other machine, as `--on` has it.
        machine, runtime: what it is and what ran the file there.
        here_machine, here_runtime: this one.
        emulated: True where an emulator ran it.
        rows: texts, of `available` test rows.
        agreement: share of rows (token: of tokens) with the same label; None for regression.
        cosine_mean, cosine_min: of the logits per text; None for regression.
        max_abs_logit: largest difference of a logit; None where one side is not finite.
        tolerance: what `max_abs_logit` is held to where there is no label.
        worst: largest differences first.
        starts_at: the layer where the difference starts; empty where it was not looked for.
        offer: a scheme that does not differ; empty where none was looked for or found.
    """

    format: Format
    runner: str
    machine: str
    runtime: str
    here_machine: str
    here_runtime: str
    emulated: bool
    rows: int
    available: int
    agreement: float | None
    cosine_mean: float | None
    cosine_min: float | None
    max_abs_logit: float | None
    tolerance: float
    worst: tuple[TextDifference, ...]
    starts_at: str = ""
    offer: str = ""

    def without_texts(self) -> "MachineDrift":
        """The same without a text of the user's; what was said of them stays."""
        worst = tuple(one.model_copy(update={"text": ""}) for one in self.worst)
        return self.model_copy(update={"worst": worst})

    def text(self) -> str:
        """For people, one line."""
        said = f"{self.runner}: "
        if self.agreement is not None and self.cosine_min is not None:
            said += (
                f"same label on {100 * self.agreement:.2f} % of {self.rows} texts, "
                f"cosine {self.cosine_mean:.5f} mean, {self.cosine_min:.5f} lowest, "
            )
        largest = "NaN" if self.max_abs_logit is None else f"{self.max_abs_logit:.3g}"
        return f"{said}largest difference of a logit {largest} ({self.runtime})"


def compare_machines(
    task: Task,
    labels: Sequence[str],
    texts: Sequence[str],
    here: Sequence[NDArray[np.float32]],
    there: Sequence[NDArray[np.float32]],
    **about: object,
) -> MachineDrift:
    """Compare the logits of two machines.

    Args:
        task: what the head is for.
        labels: in the order of their ids.
        texts: of the rows.
        here: float32 [labels] or [seq, labels] of each row.
        there: the same of the other machine.
        about: the fields of `MachineDrift` that say what ran where.
    """
    said = [[_say(task, labels, row) for row in rows] for rows in (here, there)]
    cosines = [_cosine(a, b) for a, b in zip(here, there, strict=True)]
    largest = [_largest(a, b) for a, b in zip(here, there, strict=True)]
    same = [x == y for a, b in zip(*said, strict=True) for x, y in zip(a, b, strict=True)]
    plain = task == "regression"
    # First the texts whose label changed, then by how far the logits are apart.
    differs = [a != b for a, b in zip(*said, strict=True)]
    apart = largest if plain else [-cosine for cosine in cosines]
    order = sorted(range(len(texts)), key=lambda i: (differs[i] and not plain, apart[i]))[::-1]
    worst = tuple(
        TextDifference(
            text=texts[i],
            here=" ".join(said[0][i]),
            there=" ".join(said[1][i]),
            cosine=None if plain else cosines[i],
            max_abs=_finite(largest[i]),
        )
        for i in order[:WORST]
        if largest[i] > 0
    )
    return MachineDrift.model_validate(
        {
            **about,
            "rows": len(texts),
            "agreement": None if plain else float(np.mean(same)),
            "cosine_mean": None if plain else float(np.mean(cosines)),
            "cosine_min": None if plain else float(np.min(cosines)),
            "max_abs_logit": _finite(max(largest)),
            "worst": worst,
        }
    )


def judge_machines(drift: MachineDrift) -> tuple[Gate, ...]:
    """Whether two machines may differ so far: labels and every text's cosine, or the tolerance."""
    subject = f"{drift.format} on {drift.runner}"
    about = f"{drift.rows} of {drift.available} test rows"
    if drift.agreement is None or drift.cosine_min is None:
        apart = math.inf if drift.max_abs_logit is None else drift.max_abs_logit
        held = apart <= drift.tolerance
        checks = [("outputs", apart, drift.tolerance, "largest difference", held)]
    else:
        value, low = drift.agreement, drift.cosine_min
        checks = [
            ("labels", value, MIN_AGREEMENT, "share of the same labels", value >= MIN_AGREEMENT),
            ("cosine", low, MIN_COSINE, "lowest cosine of a text", low >= MIN_COSINE),
        ]
    gates = []
    for name, value, limit, unit, passed in checks:
        message = f"{name} ({subject}): {unit} {value:.4f} against this machine ({about}), "
        message += f"limit {limit:g}: {'passed' if passed else 'FAILED'}"
        if not passed and drift.starts_at:
            message += f"; it starts at {drift.starts_at}"
        if not passed and drift.offer:
            message += f"; --set quantize.scheme={drift.offer} does not differ"
        gates.append(
            Gate(
                name=f"{name} ({subject})",
                value=value,
                limit=limit,
                unit=unit,
                passed=passed,
                message=message,
            )
        )
    return tuple(gates)


def _say(task: Task, labels: Sequence[str], logits: NDArray[np.float32]) -> tuple[str, ...]:
    """What logits say: a label, one a token, those above one half, or the number."""
    if task == "regression":
        return tuple(f"{value:.6g}" for value in logits)
    if task == "multi_label":
        return (", ".join(n for n, x in zip(labels, logits, strict=True) if x >= 0) or "none",)
    return tuple(labels[int(i)] for i in np.atleast_2d(logits).argmax(axis=1))


def _cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Of all logits of a text; -1 where one side is not finite."""
    x, y = np.ravel(a).astype(np.float64), np.ravel(b).astype(np.float64)
    scale = float(np.linalg.norm(x) * np.linalg.norm(y))
    if not np.isfinite(scale):
        return -1.0
    return float(x @ y / scale) if scale else float((x == y).all())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _largest(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    difference = np.abs(a.astype(np.float64) - b)
    return float(difference.max(initial=0.0)) if np.isfinite(difference).all() else float("inf")
