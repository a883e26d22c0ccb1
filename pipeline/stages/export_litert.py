"""Export to TFLite with litert-torch: one signature a token length, all sharing one weight copy."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.targets.errors import InputError

# Rows of a signature that are compared with PyTorch: whole, padded by a third, one token.
CHECKED_ROWS = 3


@dataclass(frozen=True)
class ExportLitert:
    """Convert a checkpoint's classifier.

    Attributes:
        lengths: token lengths to build; one over the model's `max_length` becomes `max_length`.
        max_op_versions: newest version of an operator that the runtime has, where it is limited; 0
            for an operator that it lacks.
    """

    lengths: tuple[int, ...]
    max_op_versions: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, checkpoint: Checkpoint, out: Path) -> Model:
        """Write `model.tflite`: int32 inputs [1, length], output `logits`, fp32.

        Raises:
            InputError: the model needs an operator that the runtime lacks, or has in an older
                version only.
            EdgebertError: the file does not compute what the checkpoint does.
        """
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile
        from edgebert.pipeline.runtimes.tflite_rewrite import tidy, write_tflite
        from edgebert.pipeline.stages import conformance
        from edgebert.pipeline.stages.load import load_model
        from edgebert.pipeline.stages.wrapper import export_module

        lengths = usable_lengths(self.lengths, checkpoint)
        out.mkdir(parents=True, exist_ok=True)
        file = out / "model.tflite"
        model = load_model(checkpoint)
        samples = [
            conformance.sample_inputs(checkpoint, CHECKED_ROWS, length) for length in lengths
        ]
        expected = [conformance.torch_logits(model, inputs) for inputs in samples]
        module = export_module(model, checkpoint.family, lengths)
        with opaque_inputs(module):
            convert([module] * len(lengths), checkpoint, lengths, file)
        tflite = TfliteFile(file)
        tidy(tflite.model)
        write_tflite(tflite.model, file)
        check_operators(tflite.operators, self.max_op_versions, checkpoint.name)
        for inputs, logits in zip(samples, expected, strict=True):
            conformance.check_tflite(file, inputs, logits)
        return Model.write_info(out, tflite.info("fp32", checkpoint.max_length))


def usable_lengths(lengths: tuple[int, ...], checkpoint: Checkpoint) -> tuple[int, ...]:
    """The lengths in ascending order, none over what the model takes."""
    if not lengths or min(lengths) < 1:
        raise InputError(f"token lengths have to be 1 or more, not {lengths}", "lengths")
    return tuple(sorted({min(length, checkpoint.max_length) for length in lengths}))


def convert(
    modules: Sequence[Any],
    checkpoint: Checkpoint,
    lengths: tuple[int, ...],
    file: Path,
    quant_config: Any = None,
) -> None:
    """Run litert-torch on one module a length, which may be the same one."""
    os.environ["LITERT_TORCH_SHOW_PROGRESS"] = "n"
    import litert_torch
    import torch
    from torch import nn
    from torch.overrides import TorchFunctionMode

    class WithoutIota(TorchFunctionMode):
        """What XLNet calls and LiteRT has no operator for."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if func is torch.eye:
                size = args[0]
                return torch.tensor([[float(i == j) for j in range(size)] for i in range(size)])
            if func is nn.functional.one_hot:
                classes = (kwargs or {}).get("num_classes", *args[1:])
                return torch.stack([args[0] == value for value in range(classes)], dim=-1)
            return func(*args, **(kwargs or {}))

    class NamedOutput(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module

        def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
            with WithoutIota():
                return {"logits": self.module(**inputs)}

    converter: Any = litert_torch
    for module, length in zip(modules, lengths, strict=True):
        named = NamedOutput(module)
        named.training = False  # NNCF's module refuses eval()
        inputs = sample_inputs(checkpoint, length)
        converter = converter.signature(f"s{length}", named, sample_kwargs=inputs)
    converter.convert(quant_config=quant_config).export(str(file))


def sample_inputs(checkpoint: Checkpoint, length: int) -> dict[str, Any]:
    """Inputs to trace with, int32 [1, length] each."""
    import torch

    inputs = {
        "input_ids": torch.zeros(1, length, dtype=torch.int32),
        "attention_mask": torch.ones(1, length, dtype=torch.int32),
    }
    if checkpoint.has_token_type_ids:
        inputs["token_type_ids"] = torch.zeros(1, length, dtype=torch.int32)
    return inputs


@contextmanager
def opaque_inputs(module: Any) -> Iterator[None]:
    """Keep the converter from folding anything into weights, so that each is stored as is and once.

    It multiplies LayerNorm's gamma into the next fully connected layer: a layer that is used at
    several depths (ALBERT) then gets a second copy of its query, key and value where its input is
    no LayerNorm. A barrier in front of the layer ends that; it leaves no operator in the file.

    It looks constant positions up: every length then stores its own piece of the table. A barrier
    does not hide a constant, but no converter knows that token ids are never negative: the smaller
    of 0 and an id is 0.
    """
    import torch
    from litert_torch.backend.optimization_barrier import optimization_barrier
    from torch import nn

    zero: list[torch.Tensor] = []

    def see(_: Any, args: Any, inputs: dict[str, torch.Tensor]) -> None:
        zero[:] = [inputs["input_ids"].clamp(max=0)]

    def hide(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden, _same = optimization_barrier(args[0], args[0])  # it cannot be lowered with one
        return (hidden, *args[1:])

    def shift(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if not isinstance(args[0], torch.Tensor):  # RoFormer's sinusoids are asked for a shape
            return None
        row = args[0].shape == zero[0].shape
        return (args[0] + (zero[0] if row else zero[0].amin()), *args[1:])

    words = module.model.get_input_embeddings()
    with ExitStack() as stack:
        hook = module.register_forward_pre_hook(see, with_kwargs=True)
        stack.callback(hook.remove)
        for layer in module.modules():
            if isinstance(layer, nn.Linear):
                stack.callback(layer.register_forward_pre_hook(hide).remove)
            elif isinstance(layer, nn.Embedding) and layer is not words:
                stack.callback(layer.register_forward_pre_hook(shift).remove)
        yield


def check_operators(
    operators: Mapping[str, int], max_op_versions: Mapping[str, int], where: str
) -> None:
    """Refuse operators that the runtime does not have.

    Raises:
        InputError: an operator is not builtin, or newer than `max_op_versions` allows.
    """
    foreign = [name for name in operators if name.startswith("CUSTOM")]
    if foreign:
        raise InputError(
            f"the model needs operators that are not builtin: {', '.join(foreign)}",
            where,
            "build for a target with ONNX",
        )
    newer = [
        f"{name} version {version} (it has {max_op_versions[name]})"
        for name, version in operators.items()
        if version > max_op_versions.get(name, version)
    ]
    if newer:
        raise InputError(
            f"the target's runtime is too old for {', '.join(newer)}",
            where,
            "choose another scheme, or a target with a newer runtime",
        )
