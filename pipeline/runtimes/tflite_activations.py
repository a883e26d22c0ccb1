"""What a TFLite file computes on the way to its logits.

Tensors are kept by the interpreter's own kernels, not by XNNPACK, which shows none: the last digits
of a dynamic int8 product may differ from those of a device.
"""

from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class TfliteActivations:
    """A file whose inner tensors can be read, at its shortest length.

    Args:
        file: the model file.
        pad_id: token id of padding.
        pads_left: True where padding goes before the text.
    """

    def __init__(self, file: Path, pad_id: int, pads_left: bool) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        self._interpreter = Interpreter(
            str(file),
            num_threads=1,
            experimental_preserve_all_tensors=True,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        runners = [
            self._interpreter.get_signature_runner(name)
            for name in self._interpreter.get_signature_list()
        ]
        self.runtime = f"ai-edge-litert {version('ai-edge-litert')}"
        self._pad_id, self._pads_left = pad_id, pads_left
        self._runner, self.length = min(
            ((runner, _length(runner)) for runner in runners), key=lambda pair: pair[1]
        )
        self._wanted: Collection[str] | None = None

    def select(self, names: Collection[str] | None = None) -> None:
        """Read these tensors from now on; None: all."""
        self._wanted = names

    def run(self, ids: list[int], type_ids: list[int]) -> Mapping[str, NDArray[Any]]:
        """The selected tensors for one row, by name; dequantized, and without its padding.

        Padding is cut from tensors whose last dimension but one is the length.
        """
        empty = self.length - len(ids)
        row = {
            "input_ids": (ids, self._pad_id),
            "attention_mask": ([1] * len(ids), 0),
            "token_type_ids": (type_ids, 0),
        }
        width = (empty, 0) if self._pads_left else (0, empty)
        feeds = {
            name: np.pad(
                np.array([row[name][0]], np.int32), ((0, 0), width), constant_values=row[name][1]
            )
            for name in self._runner.get_input_details()
        }
        self._runner(**feeds)
        text = slice(empty, None) if self._pads_left else slice(0, len(ids))
        subgraph = self._runner._subgraph_index  # no other way to a signature's tensors
        values: dict[str, NDArray[Any]] = {}
        for detail in self._interpreter.get_tensor_details(subgraph):
            if self._wanted is not None and detail["name"] not in self._wanted:
                continue
            try:
                value = self._interpreter.get_tensor(detail["index"], subgraph)
            except ValueError:  # a temporary of a kernel
                continue
            value = _dequantized(value, detail["quantization_parameters"])
            if value is not None:
                if value.ndim > 1 and value.shape[-2] == self.length:
                    value = value[..., text, :]
                values[detail["name"]] = value
        return values


def _length(runner: Any) -> int:
    return int(runner.get_input_details()["input_ids"]["shape"][1])


def _dequantized(value: NDArray[Any], parameters: Mapping[str, Any]) -> NDArray[Any] | None:
    """Numbers of a tensor; None for what are none (ids, masks, sums in int32)."""
    if value.dtype == np.float32:
        return value
    scales, zeros = parameters["scales"], parameters["zero_points"]
    if value.dtype not in (np.int8, np.int16) or len(scales) != 1:
        return None
    return np.asarray((value.astype(np.float32) - zeros[0]) * scales[0], np.float32)
