"""Conformance: an exported file computes what the checkpoint does in PyTorch, padding included."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgebert.pipeline.artifact import Checkpoint
from edgebert.targets.errors import EdgebertError

TOLERANCE = 1e-4  # largest difference of a logit, relative to the largest logit


def sample_inputs(
    checkpoint: Checkpoint, batch: int, length: int, seed: int = 0
) -> dict[str, torch.Tensor]:
    """Random ids with every kind of padding: none, a third, all but one, all; [batch, seq]."""
    generator = torch.Generator().manual_seed(seed)
    vocabulary = int(checkpoint.config.vocab_size)
    ids = torch.randint(0, vocabulary, (batch, length), generator=generator)
    mask = torch.ones(batch, length, dtype=torch.long)
    for row, padding in enumerate([0, length // 3, length - 1, length] * (batch // 4 + 1)):
        if row < batch and padding:
            at = slice(0, padding) if checkpoint.family.pads_left else slice(length - padding, None)
            mask[row, at] = 0
    pad = int(checkpoint.config.pad_token_id or 0)
    ids = torch.where(ids == pad, (pad + 1) % vocabulary, ids)
    inputs = {"input_ids": torch.where(mask == 1, ids, pad), "attention_mask": mask}
    if checkpoint.has_token_type_ids:
        second = (torch.arange(length) >= length // 2).long()
        inputs["token_type_ids"] = second * mask
    return inputs


def torch_logits(model: Any, inputs: dict[str, torch.Tensor]) -> Any:
    """Logits [batch, ...] of a loaded classifier."""
    with torch.no_grad():
        return model(**inputs).logits.numpy()


def check_onnx(file: Path, inputs: dict[str, torch.Tensor], expected: Any) -> None:
    """Hold an .onnx file to PyTorch's logits.

    Args:
        file: the fp32 graph.
        inputs: int64 [batch, seq] by name.
        expected: PyTorch's logits for them.

    Raises:
        EdgebertError: a logit differs.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    feeds = {name: tensor.numpy() for name, tensor in inputs.items()}
    _compare(session.run(["logits"], feeds)[0], expected, file)


def check_tflite(file: Path, inputs: dict[str, torch.Tensor], expected: Any) -> None:
    """Hold the signature of a .tflite file that has the inputs' length to PyTorch's logits.

    Args and errors as those of `check_onnx`; the rows are run one by one.
    """
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(file), num_threads=1)
    runner = interpreter.get_signature_runner(f"s{inputs['input_ids'].shape[1]}")
    feeds = {name: tensor.numpy().astype(np.int32) for name, tensor in inputs.items()}
    actual = [
        runner(**{name: values[row : row + 1] for name, values in feeds.items()})["logits"]
        for row in range(len(expected))
    ]
    _compare(np.concatenate(actual), expected, file)


def _compare(actual: Any, expected: Any, file: Path) -> None:
    """Compare logits; where PyTorch's are no numbers (a mean over no token), any will do."""
    known = np.isfinite(expected)
    limit = TOLERANCE * max(1.0, float(np.abs(expected[known]).max(initial=0.0)))
    worst = float(np.abs(actual - expected)[known].max(initial=0.0))
    if not worst <= limit:  # this way round, NaN is a fault too
        raise EdgebertError(
            f"the exported graph differs from PyTorch by {worst:.1e} (limit {limit:.0e})",
            str(file),
            "this is a fault of the export: please report it with the model's config.json",
        )
