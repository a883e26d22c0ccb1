"""Read a .tflite file: what it stores, what it computes with, what runtime it needs."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils

from edgebert.pipeline.artifact import ModelInfo, TensorSpec
from edgebert.pipeline.runtimes.stored_tensor import LARGE, StoredTensor
from edgebert.pipeline.runtimes.tflite_blocks import read_scales
from edgebert.pipeline.runtimes.tflite_versions import minimum_runtime
from edgebert.targets.errors import InputError

OPERATORS = {value: name for name, value in vars(schema.BuiltinOperator).items()}
DTYPES = {value: name.lower() for name, value in vars(schema.TensorType).items()}
NOT_BUILTIN = ("CUSTOM", "DELEGATE")


@dataclass(frozen=True)
class StoredBuffer(StoredTensor):
    """A buffer of the file and the first tensor that has it.

    Attributes:
        sha256: of the bytes.
    """

    sha256: str = ""

    @property
    def is_large(self) -> bool:
        """True for a matrix that an int8 artifact has to store in int8."""
        return self.elements > LARGE and sum(size > 1 for size in self.shape) > 1


class TfliteFile:
    """A parsed file.

    Args:
        file: the .tflite file.

    Raises:
        InputError: it is not one.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        data = file.read_bytes()
        if data[4:8] != b"TFL3":
            raise InputError("not a .tflite file", str(file), "build it again")
        self.model: Any = flatbuffer_utils.read_model_from_bytearray(data)

    @property
    def operators(self) -> dict[str, int]:
        """Operator -> newest version used; one that is not builtin goes by `CUSTOM name`."""
        found: dict[str, int] = {}
        for code in self.model.operatorCodes:
            name = operator_name(code)
            if name in NOT_BUILTIN:
                name = f"CUSTOM {text_of(code.customCode)}"
            found[name] = max(found.get(name, 0), int(code.version))
        return dict(sorted(found.items()))

    @property
    def stored(self) -> tuple[StoredBuffer, ...]:
        """The constants, each buffer once."""
        tensors: dict[int, StoredBuffer] = {}
        readers: dict[int, str] = {}
        for graph in self.model.subgraphs:
            for operator in graph.operators:
                name = operator_name(self.model.operatorCodes[operator.opcodeIndex])
                for index in (i for i in operator.inputs if i >= 0):
                    readers.setdefault(graph.tensors[index].buffer, name)
        for tensor in self._tensors():
            data = self.model.buffers[tensor.buffer].data
            if data is None or tensor.buffer in tensors:
                continue
            raw = bytes(data)
            tensors[tensor.buffer] = StoredBuffer(
                name=text_of(tensor.name),
                dtype=DTYPES[tensor.type],
                shape=shape_of(tensor),
                size_bytes=len(raw),
                operator=readers.get(tensor.buffer, ""),
                sha256=hashlib.sha256(raw).hexdigest(),
            )
        return tuple(tensors.values())

    @property
    def scales(self) -> dict[str, tuple[float, ...]]:
        """Quantized tensor -> its scales: one, one a channel or one a block."""
        found = {}
        for graph in self.model.subgraphs:
            for tensor in graph.tensors:
                if (scales := read_scales(self.model, graph, tensor)) is not None:
                    found[text_of(tensor.name)] = tuple(float(scale) for scale in scales)
        return found

    def info(self, scheme: str, max_length: int) -> ModelInfo:
        """Describe the file; a signature is one token length, named `s` and the length.

        A dimension that follows the length is that of the longest one.
        """
        signatures = {int(text_of(s.signatureKey)[1:]): s for s in self.model.signatureDefs}
        lengths = tuple(sorted(signatures))
        longest = signatures[lengths[-1]]
        tensors = self.model.subgraphs[longest.subgraphIndex].tensors

        def specs(maps: Any) -> tuple[TensorSpec, ...]:
            named = sorted((text_of(m.name), tensors[m.tensorIndex]) for m in maps)
            return tuple(
                TensorSpec(
                    name=name, dtype=DTYPES[tensor.type], shape=_shape_at(tensor, lengths[-1])
                )
                for name, tensor in named
            )

        release = minimum_runtime(self.operators)
        return ModelInfo(
            format="tflite",
            scheme=scheme,
            inputs=specs(longest.inputs),
            outputs=specs(longest.outputs),
            lengths=lengths,
            max_length=min(max_length, lengths[-1]),
            operators=self.operators,
            minimum_runtime=f"TensorFlow Lite {release}" if release else "",
        )

    def _tensors(self) -> list[Any]:
        return [tensor for graph in self.model.subgraphs for tensor in graph.tensors]


def operator_name(code: Any) -> str:
    """Name of a builtin operator."""
    return str(OPERATORS[flatbuffer_utils.get_builtin_code_from_operator_code(code)])


def text_of(value: bytes | str) -> str:
    """A string of the flatbuffer as text."""
    return value.decode() if isinstance(value, bytes) else value


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Dimensions of a tensor."""
    return tuple(int(size) for size in tensor.shape) if tensor.shape is not None else ()


def _shape_at(tensor: Any, length: int) -> tuple[int, ...]:
    """Dimensions of a tensor at a token length."""
    shape = shape_of(tensor)
    signature = shape if tensor.shapeSignature is None else tensor.shapeSignature
    return tuple(s if fixed >= 0 else length for s, fixed in zip(shape, signature, strict=True))
