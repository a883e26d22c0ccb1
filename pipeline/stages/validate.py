"""Validate: run an artifact as a device does and compare it with the reference.

Batch 1, the device's own padding, the shipping runtime: with dynamic int8 a text scores differently
by its padding and its neighbors in a batch, so that any other setting measures another model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, ModelFile
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.comparison import Conditions, compute_drift
from edgebert.pipeline.drift import DriftReport
from edgebert.pipeline.runtimes import run
from edgebert.pipeline.runtimes.run import Encoded
from edgebert.pipeline.stages.padding_change import padding_change, padding_note
from edgebert.pipeline.stages.reference import ReferenceLogits, encode_rows, pick_logits
from edgebert.pipeline.stages.token_checks import special_note, unknown_note
from edgebert.pipeline.stages.workers import core_count, share_out
from edgebert.targets.errors import InputError, MachineError

MAX_SESSIONS = 4  # each holds the model in memory


@dataclass(frozen=True)
class Outputs:
    """What a model file gave for rows.

    Attributes:
        logits: [labels] or [seq, labels] of each row.
        runtime, padding, machine: what ran it, and how.
    """

    logits: list[Any]
    runtime: str
    padding: str
    machine: str


# Runs a bundle's model file on rows, somewhere: the rows and their tokens, in order.
RunRows = Callable[[Sequence[Row], Sequence[Encoded]], Outputs]


@dataclass(frozen=True)
class Validate:
    """Measure the drift of one model file.

    The rows are those of the reference; `Reference.max_rows` limits them.

    Attributes:
        threads: threads of one inference. Rows are shared out over as many sessions as the machine
            has room for, which changes the time and nothing else.
        seed: of the bootstrap.
    """

    threads: int = 1
    seed: int = 0

    def __call__(
        self,
        checkpoint: Checkpoint,
        model: ModelFile,
        data: Dataset,
        reference: ReferenceLogits,
        bundle: Bundle | None = None,
        run_rows: RunRows | None = None,
    ) -> DriftReport:
        """The drift of `model` on the reference's rows.

        Args:
            checkpoint: what the model file was made of.
            model: the model file.
            data: the rows.
            reference: logits to compare with.
            bundle: reads texts with its tokenizer, which pruning may have trimmed; None: that of
                the checkpoint.
            run_rows: runs the model file; None: on this machine, in this process.

        Raises:
            InputError: a label that the model does not know, or a file that the runtime refuses.
            MachineError: the runtime is missing.
        """
        rows = data.split(reference.split)
        chosen, max_length = reference.rows, model.info.max_length
        tokenizer, pad_id = checkpoint.tokenizer, int(checkpoint.config.pad_token_id or 0)
        if bundle is not None:
            tokenizer = Tokenizer.from_file(str(bundle.path / "tokenizer.json"))
            pad_id = bundle.manifest.pad_id
        texts = [rows[i] for i in chosen]
        encoded = encode_rows(tokenizer, texts, max_length)
        padding = None
        if run_rows is not None:
            outputs = run_rows(texts, encoded)
        else:
            inputs = [(tokens.ids, tokens.type_ids) for tokens in encoded]
            how = (self.threads, pad_id, checkpoint.family.pads_left)
            outputs = run_sessions(model.file, inputs, *how)
            if reference.split == "test":
                session = run.open_session(model.file, *how)
                padding = padding_change(session, inputs, checkpoint.task, max_length)
        artifact = pick_logits(outputs.logits, encoded, chosen, checkpoint.task == "token")
        truncated = sum(tokens.truncated for tokens in encoded)
        cut = f"{truncated} of {len(chosen)} rows are longer than the {max_length} tokens that the "
        notes = (f"{cut}file takes, and were cut",) if truncated else ()
        odd = [unknown_note(tokenizer, encoded), special_note(tokenizer, encoded)]
        odd += [padding_note(padding)] if padding else []
        conditions = Conditions(
            split=reference.split,
            runtime=outputs.runtime,
            machine=outputs.machine,
            padding=outputs.padding,
            truncated=truncated,
            notes=(*data.notes, *notes, *filter(None, odd)),
            tokens={index: len(tokens.ids) for index, tokens in zip(chosen, encoded, strict=True)},
        )
        report = compute_drift(
            checkpoint.task,
            checkpoint.labels,
            rows,
            reference.logits,
            artifact,
            conditions,
            self.seed,
        )
        return report.model_copy(update={"padding_change": padding})


def run_sessions(
    file: Path,
    inputs: Sequence[tuple[list[int], list[int]]],
    threads: int = 1,
    pad_id: int = 0,
    pads_left: bool = False,
) -> Outputs:
    """Logits of each row (ids, type ids), one row an inference.

    Raises:
        InputError: the runtime refuses the file.
        MachineError: the runtime is missing.
    """
    threads = min(threads, core_count())  # a device may have more cores than this machine
    count = max(1, min(MAX_SESSIONS, core_count() // threads, len(inputs)))
    results: list[Any] = [None] * len(inputs)
    order = sorted(range(len(inputs)), key=lambda i: -len(inputs[i][0]))  # the long ones first

    def runner(session: run.Session) -> Callable[[int], None]:
        def run_row(index: int) -> None:
            results[index] = session.logits(*inputs[index])

        return run_row

    try:
        sessions = [run.open_session(file, threads, pad_id, pads_left) for _ in range(count)]
        share_out(order, [runner(session) for session in sessions])
    except run.RunError as error:
        kind = MachineError if error.exit_code == MachineError.exit_code else InputError
        raise kind(str(error), str(file)) from error
    return Outputs(results, sessions[0].runtime, sessions[0].padding, run.machine())
