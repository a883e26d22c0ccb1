"""Validate on another machine: its drift from the checkpoint, and how far it is from this one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.bundle import MANIFEST, Bundle, describe_file
from edgebert.pipeline.cache import Cache
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.machines import MachineDrift, compare_machines
from edgebert.pipeline.progress import Progress
from edgebert.pipeline.runners import Runner
from edgebert.pipeline.runtimes.run import Encoded
from edgebert.pipeline.stages.device_rows import describe_rows, run_on
from edgebert.pipeline.stages.reference import ReferenceLogits
from edgebert.pipeline.stages.validate import Outputs, Validate, run_sessions
from edgebert.targets import Format
from edgebert.targets.errors import MachineError


@dataclass(frozen=True)
class ValidateOn:
    """Run a bundle's model file on a runner and here, on the same texts.

    Nothing of it is kept in the cache but the answers of a run that was cut off: a device may have
    changed since.

    Attributes:
        runner: the other machine.
        seed: of the bootstrap.
    """

    runner: Runner
    seed: int = 0

    def __call__(
        self,
        checkpoint: Checkpoint,
        bundle: Bundle,
        format: Format,
        data: Dataset,
        reference: ReferenceLogits,
        cache: Cache,
        progress: Progress | None = None,
    ) -> tuple[DriftReport, MachineDrift]:
        """The drift there, against the checkpoint; and the difference from here.

        Raises:
            InputError: the bundle was altered on its way, or has no such format.
            MachineError: the device lacks something or cannot be reached.
        """
        manifest, found = bundle.manifest, []
        rows = data.split(reference.split)

        def run_rows(texts: Sequence[Row], encoded: Sequence[Encoded]) -> Outputs:
            described = describe_rows(texts)
            sha256 = describe_file(bundle.path / MANIFEST).sha256
            growing = cache.growing(cache.key((self.runner.name, format), sha256, repr(described)))
            there = run_on(self.runner, bundle, format, described, growing, progress)
            tokens = [(row.ids, row.type_ids) for row in encoded]
            file = bundle.file(format)
            here = run_sessions(file, tokens, 1, manifest.pad_id, manifest.pads_left)
            _check_shapes(here, there, self.runner)
            found.append(
                compare_machines(
                    manifest.task,
                    manifest.labels,
                    [row.text or " ".join(row.tokens) for row in texts],
                    here.logits,
                    there.logits,
                    format=format,
                    runner=self.runner.name,
                    machine=there.machine,
                    runtime=there.runtime,
                    here_machine=here.machine,
                    here_runtime=here.runtime,
                    emulated=self.runner.emulated,
                    available=len(rows),
                    tolerance=bundle.info(format).golden_tolerance,
                )
            )
            return there

        stage = Validate(seed=self.seed)
        drift = stage(checkpoint, bundle.model(format), data, reference, bundle, run_rows)
        return drift, found[0]


def _check_shapes(here: Outputs, there: Outputs, runner: Runner) -> None:
    """Refuse logits of other tokens than these."""
    for index, (a, b) in enumerate(zip(here.logits, there.logits, strict=True)):
        if np.shape(a) != np.shape(b):
            what = f"row {index}: logits {np.shape(b)} there, {np.shape(a)} here"
            cure = "its tokenizer gives other tokens: `run.py --check` in the bundle says which"
            raise MachineError(what, runner.name, cure)
