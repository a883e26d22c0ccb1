"""What an ONNX graph computes on the way to its logits.

A tensor is an output of the graph for as long as it is looked at. In a Loop, which a model that
uses one layer at several depths may have, the state after every pass is collected: `NAME[0]`, ...
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper

from edgebert.pipeline.runtimes.onnx_file import load_proto
from edgebert.pipeline.runtimes.onnx_size import load_session

_EACH = "_each"  # ends the name of what a Loop leaves after each pass


class OnnxActivations:
    """A graph whose inner tensors can be read.

    Args:
        file: the model file.
    """

    def __init__(self, file: Path) -> None:
        self._proto = load_proto(file)
        for node in self._proto.graph.node:
            if node.op_type == "Loop":
                _collect_state(node)
        self.runtime = f"onnxruntime {onnxruntime.__version__}"
        self._session: Any = None
        self._shown: list[str] = []

    @property
    def names(self) -> list[str]:
        """All inner tensors in the order in which they are computed; a Loop's states as `NAME`."""
        return [name for node in self._proto.graph.node for name in node.output if name]

    def select(self, names: Collection[str] | None = None) -> None:
        """Read these tensors from now on; None: all.

        Fewer are better: onnxruntime fuses less around a tensor that it has to show.
        """
        wanted = None if names is None else {name.partition("[")[0] for name in names}
        self._shown = [
            name for name in self.names if wanted is None or name.removesuffix(_EACH) in wanted
        ]
        probe = onnx.ModelProto()
        probe.CopyFrom(self._proto)
        given = {output.name for output in probe.graph.output}
        for name in self._shown:
            if name not in given:  # without a type: onnxruntime knows it
                probe.graph.output.append(onnx.ValueInfoProto(name=name))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        self._session = load_session(probe, options)

    def run(self, ids: list[int], type_ids: list[int]) -> Mapping[str, NDArray[Any]]:
        """The selected tensors for one row, unpadded; by name."""
        import numpy as np

        row = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": type_ids}
        feeds = {
            one.name: np.array([row[one.name]], np.int64) for one in self._session.get_inputs()
        }
        values: dict[str, NDArray[Any]] = {}
        found = self._session.run(self._shown, feeds) if self._shown else []
        for name, value in zip(self._shown, found, strict=True):
            if name.endswith(_EACH):
                state = name.removesuffix(_EACH)
                values |= {f"{state}[{index}]": one for index, one in enumerate(value)}
            else:
                values[name] = value
        return values


def _collect_state(loop: onnx.NodeProto) -> None:
    """Let a Loop leave its state after each pass, stacked; in place."""
    body = next(attribute.g for attribute in loop.attribute if attribute.name == "body")
    carried = len(loop.input) - 2  # after the number of passes and the condition
    for index in range(carried):
        inner, outer = body.output[1 + index].name, loop.output[index]
        body.node.append(helper.make_node("Identity", [inner], [f"{inner}{_EACH}"]))
        body.output.append(onnx.ValueInfoProto(name=f"{inner}{_EACH}"))
        loop.output.append(f"{outer}{_EACH}")
