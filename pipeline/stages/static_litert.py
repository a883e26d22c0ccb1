"""Static int8 for TFLite: NNCF calibrates the matrix products, litert-torch converts them."""

import os
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from edgebert.pipeline.artifact import Checkpoint, TokenRow
from edgebert.pipeline.stages.export_litert import convert, opaque_inputs, sample_inputs
from edgebert.pipeline.stages.onnx_nncf import EXTENSION_TIMEOUT_S


def write_static(
    checkpoint: Checkpoint, lengths: tuple[int, ...], rows: Sequence[TokenRow], file: Path
) -> None:
    """Quantize and convert every length; equal weights are merged by the caller.

    Only linear layers compute in int8: what lies between them (LayerNorm, softmax, GELU,
    residuals) stays fp32, since 8 bits over the residual stream cost more than all weights
    together. Each length is calibrated by itself: rows are padded as the device pads them.
    """
    os.environ.setdefault("NNCF_EXTENSION_LOAD_TIMEOUT", EXTENSION_TIMEOUT_S)
    os.environ["LITERT_TORCH_SHOW_PROGRESS"] = "n"
    import logging

    import nncf
    import torch
    from litert_torch.quantize.pt2e_quantizer import (
        PT2EQuantizer,
        get_symmetric_quantization_config,
    )
    from litert_torch.quantize.quant_config import QuantConfig
    from nncf.experimental.torch.fx import quantize_pt2e

    from edgebert.pipeline.stages.wrapper import load_export_module

    class LinearLayers(PT2EQuantizer):
        STATIC_OPS = ("linear", "addmm")

    nncf.set_log_level(logging.ERROR)
    quantizer = LinearLayers().set_global(get_symmetric_quantization_config(is_per_channel=True))
    modules = []
    for length in lengths:
        module = load_export_module(checkpoint, (length,))
        with opaque_inputs(module), redirect_stdout(StringIO()):
            program = torch.export.export(module, (), kwargs=sample_inputs(checkpoint, length))
            dataset = nncf.Dataset([padded(row, checkpoint, length) for row in rows])
            modules.append(
                quantize_pt2e(
                    program.module(),
                    quantizer,
                    dataset,
                    subset_size=len(rows),
                    fast_bias_correction=None,  # it would differ by length
                    fold_quantize=False,
                )
            )
    convert(modules, checkpoint, lengths, file, QuantConfig(pt2e_quantizer=quantizer))


def padded(row: TokenRow, checkpoint: Checkpoint, length: int) -> dict[str, Any]:
    """A row as the device feeds it: int32 [1, length] each."""
    import torch

    ids, types = row.ids[:length], row.type_ids[:length]
    inputs = sample_inputs(checkpoint, length)
    start = length - len(ids) if checkpoint.family.pads_left else 0
    own = slice(start, start + len(ids))
    inputs["input_ids"].fill_(int(checkpoint.config.pad_token_id or 0))
    inputs["attention_mask"].zero_()
    for name, values in (
        ("input_ids", ids),
        ("attention_mask", (1,) * len(ids)),
        ("token_type_ids", types),
    ):
        if name in inputs:
            inputs[name][0, own] = torch.tensor(values, dtype=torch.int32)
    return inputs
