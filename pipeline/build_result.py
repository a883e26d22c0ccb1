"""What comes out of a build, and of each scheme that it tries."""

import math
from dataclasses import dataclass
from typing import Any

from edgebert.pipeline.artifact import Model
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.drift import Trial
from edgebert.pipeline.stages.report import Report
from edgebert.pipeline.summary import summarize


@dataclass(frozen=True)
class BuildResult:
    """What a build leaves.

    Attributes:
        bundle: the bundle, also when a gate failed.
        report: what was found out on the way.
    """

    bundle: Bundle
    report: Report

    @property
    def passed(self) -> bool:
        """True when no gate failed."""
        return all(gate.passed for gate in self.report.gates)

    def describe(self) -> dict[str, Any]:
        """For programs."""
        bundle = str(self.bundle.path)
        return {"bundle": bundle, "passed": self.passed, **self.report.model_dump(mode="json")}

    def text(self) -> str:
        """For people."""
        return summarize(self.report, self.bundle.path)


@dataclass(frozen=True)
class Attempt:
    """A scheme that was tried: its file, if any, and whether it passed on the dev rows."""

    model: Model | None
    trial: Trial
    passed: bool = False

    @property
    def drop(self) -> float:
        """Drop of the task metric on the dev rows; infinite where it is no number."""
        drop = self.trial.drift.metrics[0].drop if self.trial.drift else 0.0
        return drop if math.isfinite(drop) else math.inf
