"""Half precision, for runtimes that compute in it (TensorRT on a Jetson, GPUs)."""

import warnings

import onnx
from onnx import TensorProto, numpy_helper
from onnxruntime.transformers.float16 import convert_float_to_float16

# Constants beyond this become it: a mask's -1e9 would be -inf in fp16 and its softmax NaN. It is
# below half of fp16's largest number (65504), so that sums with scores and other masks are finite.
LARGEST_CONSTANT = 3e4
# Powers overflow fp16 from |x| = 256 (squares of a norm) or 40 (the cube in GELU's tanh form), and
# so do the sums after them. LayerNormalization computes in fp32 by definition (stash_type 1).
IN_FP32 = ["Pow", "ReduceMean", "ReduceSum", "Sqrt", "Reciprocal"]


def to_fp16(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with weights and activations in fp16; inputs stay int64 and outputs fp32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one a constant that is clamped
        half = convert_float_to_float16(
            proto, keep_io_types=True, op_block_list=IN_FP32, max_finite_val=LARGEST_CONSTANT
        )
    for tensor in half.graph.initializer:
        # Constants of the operators left in fp32 are clamped neither by type nor by the conversion.
        if tensor.data_type == TensorProto.FLOAT:
            value = numpy_helper.to_array(tensor).clip(-LARGEST_CONSTANT, LARGEST_CONSTANT)
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    return half
