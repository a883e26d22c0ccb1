"""What an int4 file holds, read by numpy and written as fp32: what its runtime has to compute."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from edgebert.pipeline.runtimes.tflite_blocks import details, read_scales
from edgebert.pipeline.runtimes.tflite_file import TfliteFile, shape_of
from edgebert.pipeline.runtimes.tflite_rewrite import write_tflite
from edgebert.pipeline.stages.onnx_loop import unroll

Array = npt.NDArray[np.float32]


def nibbles(data: bytes) -> npt.NDArray[np.uint8]:
    packed = np.frombuffer(data, np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)


def widened_onnx(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The int4 graph with what its blocks hold in fp32 matrices, read from the file by numpy."""
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    kept = []
    for node in unroll(proto).graph.node:
        settings = {a.name: a.i for a in node.attribute}
        if node.op_type not in ("MatMulNBits", "GatherBlockQuantized"):
            kept.append(node)
            continue
        table = node.op_type == "GatherBlockQuantized"
        names = node.input[:1] if table else node.input[1:2]
        q, scale, zero = (stored[name] for name in (*names, *node.input[2:4]))
        scales = numpy_helper.to_array(scale).astype(np.float32)
        block = settings["block_size"]
        rows, columns = tuple(q.dims) if table else (settings["N"], settings["K"])
        blocks = -(-columns // block)
        values = nibbles(q.raw_data).astype(np.float32)
        width = columns if table else blocks * block
        values = values[: rows * width].reshape(rows, width)[:, :columns]
        zeros = nibbles(zero.raw_data)
        # A MatMulNBits pads the zero points of each row to whole bytes.
        zeros = zeros[: rows * blocks] if table else zeros.reshape(rows, -1)[:, :blocks]
        each = [np.repeat(part.reshape(rows, -1), block, axis=1) for part in (scales, zeros)]
        matrix = (values - each[1][:, :columns]) * each[0][:, :columns]
        name = f"{q.name}_wide"
        if name not in stored:
            wide = np.ascontiguousarray(matrix if table else matrix.T)
            stored[name] = numpy_helper.from_array(wide.astype(np.float32), name)
            proto.graph.initializer.append(stored[name])
        if table:
            half = onnx.helper.make_node("Gather", [name, node.input[1]], [f"{node.output[0]}_32"])
            kept += [half, onnx.helper.make_node("Cast", half.output, node.output, to=10)]
        else:
            kept.append(onnx.helper.make_node("MatMul", [node.input[0], name], node.output))
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    return proto


def widened_tflite(fp32: Path, int4: Path, out: Path) -> int:
    """The fp32 file with the numbers of the int4 file, read by numpy; how many matrices."""
    wide, narrow = TfliteFile(fp32).model, TfliteFile(int4).model
    values: dict[int, Array] = {}
    for before, after in zip(wide.subgraphs, narrow.subgraphs, strict=True):
        for original, tensor in zip(before.tensors, after.tensors, strict=False):
            if details(tensor) is not None:
                rows, columns = shape_of(tensor)
                assert shape_of(original) == (rows, columns)
                q = nibbles(bytes(narrow.buffers[tensor.buffer].data))[: rows * columns]
                signed = np.where(q > 7, q.astype(np.int8) - 16, q).astype(np.float32)
                scales = read_scales(narrow, after, tensor).reshape(rows, -1, 1)
                blocks = signed.reshape(rows, scales.shape[1], -1) * scales
                values[original.buffer] = blocks.reshape(-1).astype(np.float32)
    for buffer, matrix in values.items():
        wide.buffers[buffer].data = matrix.view(np.uint8)
    write_tflite(wide, out)
    return len(values)
