"""One seeded, resumable run of transformers' Trainer: what fine-tuning and distillation share.

The Trainer is built on accelerate: `accelerate launch` runs the same training on many GPUs, and
only the process of rank 0 writes.
"""

import json
import logging
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from edgebert.pipeline.progress import Report
from edgebert.pipeline.stages.workers import core_count
from edgebert.pipeline.training_settings import TrainingSettings
from edgebert.targets.errors import InputError, MachineError

_LOSS_STEPS = 50  # steps that a reported loss is the mean of
# Below this many tokens a step, the threads of one matrix product wait longer for each other than
# they save: with 448 tokens (32 rows of 14) and a small BERT, one thread is as fast as two on an
# idle machine and ten times as fast on a busy one.
_TOKENS_PER_THREAD = 1024


class _Trainer(Trainer):
    """A Trainer that stops at numbers which are none, and saves modules with shared tensors."""

    def compute_loss(self, *args: Any, **keywords: Any) -> Any:
        """Loss of one batch; refuses one that is not finite, before anything learns from it."""
        loss = super().compute_loss(*args, **keywords)
        if not bool(torch.isfinite(loss)):
            raise self._failure(f"the loss is {float(loss)}")
        return loss

    def _save_checkpoint(self, *args: Any, **keywords: Any) -> None:
        # A gradient can overflow where its loss did not: the last good checkpoint must stay so.
        self.refuse_nonfinite()
        super()._save_checkpoint(*args, **keywords)

    def refuse_nonfinite(self) -> None:
        """Stop where a weight is no number."""
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise self._failure(f"{name} is not finite")

    def _failure(self, what: str) -> InputError:
        saved = _last_complete(Path(self.args.output_dir))
        return InputError(
            f"training stopped: {what} at step {self.state.global_step + 1}",
            f"the last good checkpoint is {saved}" if saved else "no checkpoint was saved before",
            "set a lower learning_rate, or bf16=false",
        )

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # safetensors takes no two names over one storage; loading one of them fills both.
        tensors = state_dict or self.model.state_dict()
        first: dict[Any, str] = {}
        for name, tensor in tensors.items():
            first.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), name)
        super()._save(output_dir, state_dict={name: tensors[name] for name in first.values()})


class _Reporter(TrainerCallback):
    """Passes on how far the run is."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.loss = math.nan

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Keep the loss."""
        self.loss = float((logs or {}).get("loss", self.loss))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report a step."""
        self.report(state.global_step, state.max_steps, self.loss)


def run_training(
    module: nn.Module,
    texts: torch.utils.data.Dataset[dict[str, Any]],
    collator: Callable[[list[dict[str, Any]]], Any],
    settings: TrainingSettings,
    work: Path,
    callbacks: tuple[TrainerCallback, ...] = (),
    report: Report | None = None,
) -> None:
    """Train `module`, whose forward returns `{"loss": ...}`, in place.

    Args:
        module: the module to train.
        texts: the rows; each has `input_ids`, by whose length they are grouped.
        collator: makes a batch of them.
        settings: of the run.
        work: folder of the checkpoints; a run that was killed resumes from the last of them and
            ends with the same weights as an unbroken run.
        callbacks: called at each step.
        report: called after each step, in place of the Trainer's own bar.

    Raises:
        InputError: the loss or a weight stopped being a number.
        MachineError: the disk is full.
    """
    logging.getLogger("transformers.trainer").setLevel(logging.WARNING)
    count = len(texts)
    steps = math.ceil(count / settings.batch_size) * settings.epochs
    arguments = TrainingArguments(
        output_dir=str(work),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=int(settings.warmup * steps),
        weight_decay=settings.weight_decay,
        seed=settings.seed,
        use_cpu=not torch.cuda.is_available(),
        bf16=settings.bf16,
        train_sampling_strategy="group_by_length",
        remove_unused_columns=False,
        logging_steps=_LOSS_STEPS,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=settings.save_steps,
        save_total_limit=2,
        dataloader_pin_memory=False,
        report_to=[],
        disable_tqdm=report is not None,
    )
    reporters = (_Reporter(report),) if report else ()
    trainer = _Trainer(
        model=module,
        args=arguments,
        train_dataset=texts,
        data_collator=collator,
        callbacks=[*callbacks, *reporters],
    )
    if report:
        trainer.remove_callback(PrinterCallback)  # what it puts in place of the bar
    lengths = [len(texts[i]["input_ids"]) for i in range(0, count, max(1, count // 1000))]
    tokens = settings.batch_size * sum(lengths) / len(lengths)
    last = _last_complete(work)
    try:
        with _threads_for(tokens):
            trainer.train(resume_from_checkpoint=str(last) if last else None)
        trainer.refuse_nonfinite()
    except OSError as error:
        raise MachineError(
            f"training stopped: {error}",
            str(work),
            "free some space, or put the cache elsewhere with EDGEBERT_CACHE",
        ) from error


def is_main_process() -> bool:
    """False in the processes of `accelerate launch` that leave writing to that of rank 0."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def _threads_for(tokens: float) -> Iterator[None]:
    """As many torch threads as a step of so many tokens has use for; OMP_NUM_THREADS goes first."""
    before = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, min(core_count(), int(tokens / _TOKENS_PER_THREAD))))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _last_complete(work: Path) -> Path | None:
    """The last checkpoint that was written to its end; a later one, cut short, is removed."""
    while work.is_dir() and (last := get_last_checkpoint(str(work))):
        try:  # the Trainer writes this file last
            json.loads((Path(last) / "trainer_state.json").read_text(encoding="utf-8"))
            return Path(last)
        except (OSError, ValueError):
            if is_main_process():
                shutil.rmtree(last, ignore_errors=True)
            else:
                return None
    return None
