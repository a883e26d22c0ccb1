"""NNCF on an ONNX graph: static post-training quantization and weight compression."""

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Iterator, Sequence

import onnx
from onnx import numpy_helper

from edgebert.pipeline.stages.onnx_integer import lower_to_integer
from edgebert.pipeline.stages.onnx_weights import Feed, stored_matmuls

# Tables and convolutions are stored in int8 by passes of our own. NNCF fails on ConvBERT's
# convolutions over rows of different lengths, and compresses them with scales that do not fit.
IGNORED = ["Gather", "Conv"]
# Its torch part builds an extension at first use; its own limit of 60 s is short on a busy machine.
EXTENSION_TIMEOUT_S = "240"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Standard output is the command's result; NNCF prints progress bars and node lists there."""
    os.environ.setdefault("NNCF_EXTENSION_LOAD_TIMEOUT", EXTENSION_TIMEOUT_S)
    import nncf

    nncf.set_log_level(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _own_biases(proto: onnx.ModelProto) -> None:
    """Give every Add that shares its bias with another a copy of it.

    NNCF corrects biases one node at a time and in place: where ALBERT's depths share one, the last
    correction would stand for all.
    """
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    seen: set[str] = set()
    for node in proto.graph.node:
        for index, name in enumerate(node.input):
            if node.op_type != "Add" or name not in stored or len(stored[name].dims) != 1:
                continue
            if name in seen:
                copy = f"{name}_of_{node.output[0]}"
                value = numpy_helper.to_array(stored[name])
                proto.graph.initializer.append(numpy_helper.from_array(value, copy))
                node.input[index] = copy
            seen.add(name)


def _other_products(proto: onnx.ModelProto) -> list[str]:
    """MatMuls without a stored matrix: of two activations, or with a constant for each head."""
    stored = {node.name for node in stored_matmuls(proto)}
    return [n.name for n in proto.graph.node if n.op_type == "MatMul" and n.name not in stored]


def quantize_static(
    proto: onnx.ModelProto, feeds: Sequence[Feed], reduce_range: bool
) -> onnx.ModelProto:
    """Quantize MatMuls with stored weights: int8 per channel, activations in calibrated ranges.

    Products of two activations (attention scores and context) stay fp32: they are a small part of
    the operations at the lengths a device runs, and static ranges harm them most.

    Args:
        proto: the fp32 graph; changed in place.
        feeds: calibration inputs, batch 1 each, at their own length.
        reduce_range: weights in 7 bits, so that x86 without VNNI cannot saturate.
    """
    with quiet():
        import nncf
        from nncf.quantization import advanced_parameters as advanced

        _own_biases(proto)
        overflow = advanced.OverflowFix.ENABLE if reduce_range else advanced.OverflowFix.DISABLE
        # SmoothQuant is ours (onnx_smooth.py): NNCF's leaves out weights that layers share.
        off = advanced.AdvancedSmoothQuantParameters(convolution=-1, matmul=-1)
        quantized = nncf.quantize(
            proto,
            nncf.Dataset(list(feeds)),
            subset_size=len(feeds),
            model_type=nncf.ModelType.TRANSFORMER,
            ignored_scope=nncf.IgnoredScope(
                types=IGNORED, names=_other_products(proto), validate=False
            ),
            advanced_parameters=advanced.AdvancedQuantizationParameters(
                overflow_fix=overflow, smooth_quant_alphas=off
            ),
        )
    lower_to_integer(quantized)
    return quantized


def compress_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Store the weights of MatMuls as asymmetric int8 per channel; computing stays in fp32."""
    with quiet():
        import nncf

        return nncf.compress_weights(
            proto,
            mode=nncf.CompressWeightsMode.INT8_ASYM,
            ignored_scope=nncf.IgnoredScope(
                types=IGNORED, names=_other_products(proto), validate=False
            ),
        )
