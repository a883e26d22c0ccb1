"""Quantization schemes: named settings.

A name decodes as in ai-edge-quantizer: `dynamic_wi8c_afp32` is dynamic ranges, weights int8 per
channel, activations fp32 between the operators (quantized inside them); `static_wi8c_ai8` has
calibrated int8 activations; `weight_only_*` computes in fp32; `hr` rotates by a Hadamard matrix
first; `wi7` is int8 in a range of 7 bits, `b128` a scale for every 128 inputs of a channel, `gptq`
weights rounded so that their errors make up for each other, `token` a scale for every token,
`smooth` SmoothQuant first, `trained` ranges that quantization-aware training has learned, `mixed`
some layers in fp32.
"""

import difflib
from dataclasses import dataclass, replace
from typing import Literal

from edgebert.targets import Format
from edgebert.targets.errors import EdgebertError, InputError


class SchemeError(EdgebertError):
    """A scheme cannot be built for this model: its tool failed."""


@dataclass(frozen=True)
class Scheme:
    """One way to quantize.

    Attributes:
        name: what users and recipes write.
        formats: the formats it exists for.
        tool: what does it: `none`, `onnxruntime`, `ai-edge-quantizer`, `nncf` or `cast`.
        calibrated: whether it needs calibration texts.
        trained: whether it needs ranges that quantization-aware training has learned.
        weight_bits: bits of a stored weight.
        table_bits: bits of an embedding table (ONNX; in TFLite they are the weights').
        description: one line for `edgebert inspect` and the report.
        per_channel: a scale for every output channel of a weight, not one for the matrix (ONNX).
        reduce_range: weights use 7 of their 8 bits: x86 without VNNI adds two products of uint8 and
            int8 in 16 bits, and 2 * 255 * 127 does not fit (ONNX).
        smoothing: strength (alpha) of SmoothQuant before quantizing, 0 for none (ONNX).
        block_size: inputs of a channel that share a scale, 0 for no blocks.
        per_token: a scale for every token of an activation, not one for all (ONNX).
        error_feedback: weights are rounded by GPTQ, which lets the next ones make up for an error.
    """

    name: str
    formats: tuple[Format, ...]
    tool: Literal["none", "onnxruntime", "litert", "nncf", "cast"]
    weight_bits: int
    description: str
    calibrated: bool = False
    trained: bool = False
    per_channel: bool = False
    reduce_range: bool = False
    smoothing: float = 0.0
    block_size: int = 0
    per_token: bool = False
    error_feedback: bool = False
    table_bits: int = 8

    @property
    def uses_texts(self) -> bool:
        """Whether calibration texts change the result; random tokens do where none are needed."""
        return self.calibrated or self.smoothing > 0


def _and_gptq(nearest: Scheme) -> tuple[Scheme, Scheme]:
    """A scheme that rounds weights to the nearest level, and the same with GPTQ."""
    return nearest, replace(
        nearest,
        name=f"{nearest.name}_gptq",
        description=f"as {nearest.name}, rounded by GPTQ: errors make up for each other",
        calibrated=True,
        error_feedback=True,
    )


ONNX = (
    Scheme("fp16", ("onnx",), "cast", 16, "half precision, finite on an all-padding row"),
    Scheme("dynamic_wi8_afp32", ("onnx",), "onnxruntime", 8, "int8 weights with a scale a matrix"),
    Scheme(
        "dynamic_wi8c_afp32",
        ("onnx",),
        "onnxruntime",
        8,
        "int8 weights with a scale a channel",
        per_channel=True,
    ),
    Scheme(
        "dynamic_wi8c_afp32_token",
        ("onnx",),
        "onnxruntime",
        8,
        "as dynamic_wi8c_afp32, with a scale a token: padding and batch change no answer",
        per_channel=True,
        smoothing=0.6,
        per_token=True,
    ),
    Scheme(
        "dynamic_wi7c_afp32_token",
        ("onnx",),
        "onnxruntime",
        8,
        "as dynamic_wi8c_afp32_token in 7 of 8 bits, for x86 without VNNI",
        per_channel=True,
        reduce_range=True,
        smoothing=0.6,
        per_token=True,
    ),
    Scheme(
        "dynamic_wi7c_afp32",
        ("onnx",),
        "onnxruntime",
        8,
        "as dynamic_wi8c_afp32 in 7 of 8 bits, for x86 without VNNI",
        per_channel=True,
        reduce_range=True,
    ),
    Scheme(
        "static_wi8c_ai8",
        ("onnx",),
        "nncf",
        8,
        "int8 weights and calibrated 8-bit activations of the matrix products",
        calibrated=True,
        per_channel=True,
    ),
    Scheme(
        "static_wi8c_ai8_smooth",
        ("onnx",),
        "nncf",
        8,
        "as static_wi8c_ai8, with ranges moved from the activations into the weights first",
        calibrated=True,
        per_channel=True,
        smoothing=0.85,
    ),
    Scheme(
        "static_wi7c_ai8_smooth",
        ("onnx",),
        "nncf",
        8,
        "as static_wi8c_ai8_smooth in 7 of 8 bits, for x86 without VNNI",
        calibrated=True,
        per_channel=True,
        reduce_range=True,
        smoothing=0.85,
    ),
    Scheme(
        "static_wi8c_ai8_trained",
        ("onnx",),
        "nncf",
        8,
        "as static_wi8c_ai8, with the ranges of quantization-aware training",
        trained=True,
        per_channel=True,
    ),
    Scheme(
        "static_wi7c_ai8_trained",
        ("onnx",),
        "nncf",
        8,
        "as static_wi8c_ai8_trained in 7 of 8 bits, for x86 without VNNI",
        trained=True,
        per_channel=True,
        reduce_range=True,
    ),
    Scheme(
        "weight_only_wi8b32",
        ("onnx",),
        "onnxruntime",
        8,
        "int8 weights with a scale for 32 inputs of a channel",
        # on x86, onnxruntime adds blocks of 128 up in another order in the last of an odd number
        # of rows: later layers round to other integers, and padding changes an answer
        block_size=32,
    ),
    *_and_gptq(
        Scheme(
            "weight_only_wi4b32",
            ("onnx",),
            "onnxruntime",
            4,
            "int4 weights with a scale for 32 inputs of a channel; embeddings int8",
            block_size=32,
        )
    ),
    *_and_gptq(
        Scheme(
            "weight_only_wi4b128",
            ("onnx",),
            "onnxruntime",
            4,
            "int4 weights with a scale for 128 inputs of a channel; embeddings int4",
            block_size=128,
            table_bits=4,
        )
    ),
)

SCHEMES: tuple[Scheme, ...] = (
    *ONNX,
    Scheme("fp32", ("onnx", "tflite"), "none", 32, "as exported"),
    Scheme("dynamic_wi8c_afp32", ("tflite",), "litert", 8, "int8 weights with a scale a channel"),
    Scheme(
        "dynamic_wi8t_afp32",
        ("tflite",),
        "litert",
        8,
        "int8 weights with a scale a matrix, as tflite-runtime 2.14 computes them",
    ),
    Scheme(
        "dynamic_wi8c_hr_afp32",
        ("tflite",),
        "litert",
        8,
        "as dynamic_wi8c_afp32, rotated by a Hadamard matrix first",
    ),
    Scheme(
        "weight_only_wi8c_afp32",
        ("tflite",),
        "litert",
        8,
        "int8 weights with a scale a channel, computed with in fp32",
    ),
    *_and_gptq(
        Scheme(
            "dynamic_wi4b64_afp32",
            ("tflite",),
            "litert",
            4,
            "int4 weights with a scale for 64 inputs of a channel",
            block_size=64,
        )
    ),
    Scheme(
        "static_wi8c_ai8",
        ("tflite",),
        "nncf",
        8,
        "int8 weights and calibrated int8 activations of the matrix products",
        calibrated=True,
    ),
)


MIXED = "_mixed"


def mixed_name(name: str) -> str:
    """What a scheme is called where some layers are left in fp32."""
    return f"{name}{MIXED}"


def find_scheme(name: str, format: Format) -> Scheme:
    """A scheme by name.

    Raises:
        InputError: no such scheme for that format.
    """
    known = {scheme.name: scheme for scheme in SCHEMES if format in scheme.formats}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        raise InputError(
            f"no scheme '{name}' for {format}",
            f"nearest: {', '.join(near)}" if near else "",
            f"known: {', '.join(known)}",
        )
    return known[name]
