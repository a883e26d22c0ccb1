"""Quantize an exported ONNX model by a named scheme.

Every integer scheme: the head as MatMul, the scheme's own treatment of the MatMuls, embedding
tables as int8 rows or int4 blocks, whatever is still large in fp32 stored as int8, equal tensors
stored once; then the result is held to that.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.runtimes.onnx_file import check_int8, describe, load_proto, required_ir
from edgebert.pipeline.runtimes.onnx_size import save_onnx
from edgebert.pipeline.runtimes.stored_tensor import Layer
from edgebert.pipeline.schemes import Scheme, SchemeError, mixed_name
from edgebert.pipeline.stages import onnx_graph, onnx_loop
from edgebert.pipeline.stages.onnx_mixed import mix, onnx_layers
from edgebert.pipeline.stages.onnx_weights import (
    Feed,
    embeddings_to_int8,
    gemm_to_matmul,
    store_rest_int8,
    stored_matmuls,
    tidy,
)
from edgebert.pipeline.stages.random_rows import random_rows
from edgebert.targets.errors import EdgebertError, InputError


@dataclass(frozen=True)
class QuantizeOnnx:
    """Quantize an ONNX model.

    Attributes:
        scheme: what to do.
        max_opset: newest default-domain opset the target's runtime implements.
        max_ir_version: newest IR version it reads.
        fp32_layers: names of the layers that are left in fp32.
    """

    scheme: Scheme
    max_opset: int = 20
    max_ir_version: int = 10
    fp32_layers: tuple[str, ...] = ()

    @property
    def mixable(self) -> bool:
        """True where the scheme quantizes layer by layer, each of which can be left in fp32."""
        return self.scheme.tool != "cast"

    def __call__(
        self, checkpoint: Checkpoint, fp32: Model, calibration: Sequence[TokenRow], out: Path
    ) -> Model:
        """Leave `model.onnx` and `model.json` in `out`.

        Args:
            checkpoint: the checkpoint that `fp32` was exported from.
            fp32: the exported model, constants folded.
            calibration: tokenized rows of the train split, where the scheme uses texts.
            out: the folder to write.

        Raises:
            InputError: the scheme needs calibration rows and there are none, or the result needs a
                newer opset or IR version than the target has.
            SchemeError: the scheme's tool failed on this model, left large weights in fp32, or
                layers should stay in fp32 and this scheme has no such form.
        """
        where = self._where(fp32)
        fp32_proto, proto = self._quantize(checkpoint, fp32, calibration)
        if self.fp32_layers:
            if not self.mixable:
                raise SchemeError(f"{self.scheme.name} leaves no layer in fp32", where)
            chosen = [x.name for x in onnx_layers(fp32_proto) if x.name not in self.fp32_layers]
            proto = mix(fp32_proto, proto, chosen)
        if self.scheme.tool != "cast":
            store_rest_int8(proto, self.fp32_layers)
        onnx_graph.strip(proto)
        onnx_graph.store_once(proto)
        proto.ir_version = max(fp32_proto.ir_version, required_ir(proto))
        if self.scheme.tool != "cast":
            check_int8(proto, where, self.fp32_layers)
        onnx_loop.roll(proto)
        self._check_limits(proto, where)
        out.mkdir(parents=True, exist_ok=True)
        save_onnx(proto, out / "model.onnx")
        name = mixed_name(self.scheme.name) if self.fp32_layers else self.scheme.name
        return describe(out, name, checkpoint.max_length)

    def layers(self, checkpoint: Checkpoint, fp32: Model) -> tuple[Layer, ...]:
        """What can be quantized or left in fp32 by itself."""
        proto = onnx_loop.unroll(load_proto(fp32.file))
        gemm_to_matmul(proto)
        return onnx_layers(proto)

    def one_by_one(
        self, checkpoint: Checkpoint, fp32: Model, calibration: Sequence[TokenRow], folder: Path
    ) -> Iterator[tuple[Layer, Path]]:
        """Each layer with a file in which it alone is quantized; the next one takes its place.

        Raises:
            InputError, SchemeError: as a call does.
        """
        fp32_proto, quantized = self._quantize(checkpoint, fp32, calibration)
        for layer in onnx_layers(fp32_proto):
            save_onnx(mix(fp32_proto, quantized, {layer.name}), folder / "model.onnx")
            yield layer, folder / "model.onnx"

    def _where(self, fp32: Model) -> str:
        return f"scheme {self.scheme.name} on {fp32.file}"

    def _quantize(
        self, checkpoint: Checkpoint, fp32: Model, calibration: Sequence[TokenRow]
    ) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """The fp32 graph in the form that is quantized, and with every layer quantized."""
        if self.scheme.calibrated and not calibration:
            raise InputError(
                f"{self.scheme.name} needs calibration texts, and there are 0 usable rows",
                self._where(fp32),
                "give --data with a train split, or choose a dynamic or weight-only scheme",
            )
        proto = onnx_loop.unroll(load_proto(fp32.file))
        names = [spec.name for spec in fp32.info.inputs]
        rows = (calibration or random_rows(checkpoint)) if self.scheme.uses_texts else ()
        feeds = [_feed(row, names) for row in rows]
        try:
            return self._apply(checkpoint, proto, calibration, feeds)
        except (EdgebertError, OSError, MemoryError):  # a full disk is no fault of the scheme
            raise
        except Exception as error:  # the tools raise types of their own, bare Exception among them
            lines = str(error).strip().splitlines() or [""]
            raise SchemeError(
                f"{self.scheme.tool} failed: {type(error).__name__}: {lines[0]}", self._where(fp32)
            ) from error

    def _apply(
        self,
        checkpoint: Checkpoint,
        proto: onnx.ModelProto,
        calibration: Sequence[TokenRow],
        feeds: list[Feed],
    ) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        scheme = self.scheme
        tidy(proto)
        if scheme.tool == "cast":
            from edgebert.pipeline.stages.onnx_fp16 import to_fp16

            return proto, to_fp16(proto)
        gemm_to_matmul(proto)
        if scheme.smoothing:
            from edgebert.pipeline.stages.onnx_smooth import smooth

            only = "LayerNormalization" if scheme.per_token else ""
            smooth(proto, feeds, scheme.smoothing, only)
        fp32 = onnx.ModelProto()
        fp32.CopyFrom(proto)
        if scheme.block_size:
            from edgebert.pipeline.stages.gptq import input_moments
            from edgebert.pipeline.stages.onnx_blocks import embeddings_to_int4, matmuls_to_blocks

            moments = input_moments(checkpoint, calibration) if scheme.error_feedback else None
            matmuls_to_blocks(proto, scheme.weight_bits, scheme.block_size, moments)
            if scheme.table_bits == 4:
                embeddings_to_int4(proto)
        elif scheme.per_token:
            from edgebert.pipeline.stages.onnx_tokens import quantize_tokens

            quantize_tokens(proto, 7 if scheme.reduce_range else 8)
        elif scheme.tool == "onnxruntime":
            proto = _quantize_dynamic(proto, scheme)
        elif scheme.trained:
            from edgebert.pipeline.stages.fake_quantizers import load_ranges
            from edgebert.pipeline.stages.onnx_trained import quantize_trained

            quantize_trained(proto, load_ranges(checkpoint))
        else:
            from edgebert.pipeline.stages.onnx_nncf import quantize_static

            proto = quantize_static(proto, feeds, scheme.reduce_range)
        embeddings_to_int8(proto)
        return fp32, proto

    def _check_limits(self, proto: onnx.ModelProto, where: str) -> None:
        opset = next(entry.version for entry in proto.opset_import if entry.domain == "")
        if opset > self.max_opset or proto.ir_version > self.max_ir_version:
            raise InputError(
                f"{self.scheme.name} gives opset {opset} and IR version {proto.ir_version}; "
                f"the target takes {self.max_opset} and {self.max_ir_version}",
                where,
                "choose another scheme, or a newer onnxruntime for the target",
            )


def _feed(row: TokenRow, names: Sequence[str]) -> Feed:
    """A row as the graph takes it: batch 1, its own length, no padding."""
    columns = {
        "input_ids": row.ids,
        "attention_mask": (1,) * len(row.ids),
        "token_type_ids": row.type_ids,
    }
    return {name: np.array([columns[name]], np.int64) for name in names}


def _quantize_dynamic(proto: onnx.ModelProto, scheme: Scheme) -> onnx.ModelProto:
    """Run onnxruntime's dynamic quantization over the MatMuls with stored weights."""
    import logging

    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dynamic.onnx"
        # It advises its own preprocessing through the root logger; constants are folded already.
        logging.disable(logging.WARNING)
        try:
            quantize_dynamic(
                proto,
                file,
                op_types_to_quantize=["MatMul"],
                # and not those with constants for each head, for which it has no kernel
                nodes_to_quantize=[node.name for node in stored_matmuls(proto)],
                per_channel=scheme.per_channel,
                reduce_range=scheme.reduce_range,
                weight_type=QuantType.QInt8,
                extra_options={"MatMulConstBOnly": True},
            )
        finally:
            logging.disable(logging.NOTSET)
        return load_proto(file)
