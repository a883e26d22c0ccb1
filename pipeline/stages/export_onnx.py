"""Export: a checkpoint to ONNX with dynamic batch and length, folded, checked against PyTorch."""

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch

from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.runtimes import onnx_size
from edgebert.pipeline.runtimes.onnx_file import describe
from edgebert.pipeline.stages import onnx_graph, onnx_loop
from edgebert.pipeline.stages.conformance import check_onnx, sample_inputs, torch_logits
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.padding import padding_as_first_token
from edgebert.pipeline.stages.wrapper import ExportModule, export_module
from edgebert.targets.errors import EdgebertError, InputError

EXPORTER_OPSETS = (18, 20)  # oldest the exporter writes; newest that gains anything (Gelu)


@dataclass(frozen=True)
class ExportOnnx:
    """Export to ONNX.

    Attributes:
        max_opset: newest default-domain opset the target's runtime implements.
        max_ir_version: newest IR version it reads.
    """

    max_opset: int = 20
    max_ir_version: int = 10

    def __call__(self, checkpoint: Checkpoint, out: Path) -> Model:
        """Leave `model.onnx` and `model.json` in `out`.

        Raises:
            InputError: the graph needs a newer opset or IR version than the target has.
            EdgebertError: the graph does not compute what the checkpoint does.
        """
        out.mkdir(parents=True, exist_ok=True)
        model = load_model(checkpoint)
        check_inputs = sample_inputs(checkpoint, batch=4, length=min(24, checkpoint.max_length))
        expected = torch_logits(model, check_inputs)
        parameters = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        module = export_module(model, checkpoint.family)
        with tempfile.TemporaryDirectory(dir=out) as work:
            raw, folded = Path(work) / "raw.onnx", Path(work) / "folded.onnx"
            _trace(module, checkpoint, max(EXPORTER_OPSETS[0], self._opset), raw)
            graph = onnx_graph.fold_constants(raw, folded)
        graph = self._limit(graph)
        onnx_graph.copy_dimensions(graph)
        onnx_graph.strip(graph)
        onnx_graph.store_once(graph)
        onnx_graph.name_initializers(graph, parameters)
        onnx_loop.roll(graph)
        file = out / "model.onnx"
        onnx_size.save_onnx(graph, file)
        onnx.checker.check_model(str(file), full_check=True)
        exported = describe(out, "fp32", checkpoint.max_length)
        _check_shapes(exported.info.inputs)
        check_onnx(file, check_inputs, expected)
        return exported

    @property
    def _opset(self) -> int:
        return min(EXPORTER_OPSETS[1], self.max_opset)

    def _limit(self, graph: Any) -> Any:
        """Bring the opset and the IR version within the target's limits."""
        if self._opset < EXPORTER_OPSETS[0]:
            try:
                converted = onnx.version_converter.convert_version(
                    onnx_size.without_weights(graph), self._opset
                )
            except Exception as error:  # the converter raises bare RuntimeErrors
                raise InputError(
                    f"this model has no form in opset {self._opset}: {error}",
                    "max_opset of the target",
                    f"opset {EXPORTER_OPSETS[0]} has one: use a newer onnxruntime on the device",
                ) from error
            onnx_size.restore_weights(converted, graph)
            graph = converted
        needed_ir = onnx_graph.IR_OF_OPSET[self._opset]
        if needed_ir > self.max_ir_version:
            raise InputError(
                f"opset {self._opset} needs IR version {needed_ir}, not {self.max_ir_version}",
                "max_ir_version of the target",
                "lower max_opset, or raise max_ir_version if the runtime reads it",
            )
        graph.ir_version = needed_ir
        return graph


def _trace(module: ExportModule, checkpoint: Checkpoint, opset: int, file: Path) -> None:
    """Run torch's exporter."""
    inputs = sample_inputs(checkpoint, batch=2, length=min(16, checkpoint.max_length))
    dims = {
        0: torch.export.Dim("batch", min=1, max=1024),
        1: torch.export.Dim("seq", min=2, max=checkpoint.max_length),
    }
    with _quiet(), padding_as_first_token(module):
        program = torch.onnx.export(
            module,
            (),
            kwargs=inputs,
            dynamo=True,
            dynamic_shapes=dict.fromkeys(inputs, dims),
            output_names=["logits"],
            opset_version=opset,
            verbose=False,
        )
    size = sum(p.numel() * p.element_size() for p in module.parameters())
    program.save(str(file), external_data=size > onnx_size.INLINE_LIMIT)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence what exporters print about themselves."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _check_shapes(inputs: Any) -> None:
    """All inputs have the same symbolic batch and length."""
    shapes = {spec.shape for spec in inputs}
    if len(shapes) != 1 or not all(isinstance(dim, str) for dim in next(iter(shapes))):
        listed = ", ".join(f"{spec.name} {list(spec.shape)}" for spec in inputs)
        raise EdgebertError(f"the exported inputs do not share one dynamic shape: {listed}")
