"""Layer drift: run the fp32 checkpoint and a model file on the same texts, layer by layer.

PyTorch says what each layer gives. The tensor of the exported fp32 file that holds the same numbers
is that layer's end, of whatever family it is and whatever the exporter calls it; quantizing keeps
its name. Where it does not, the tensor that is most like it, in the order of the layers, is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgebert.calibration.dataset import Row
from edgebert.calibration.sample import spread
from edgebert.pipeline.artifact import Checkpoint, ModelFile
from edgebert.pipeline.layers import EQUAL_DB, LayerDrift, LayerReport, with_added
from edgebert.pipeline.runtimes.run import Encoded
from edgebert.pipeline.schemes import MIXED, find_scheme
from edgebert.pipeline.stages.reference import encode_rows
from edgebert.targets.errors import InputError

PROBES = 2  # texts by which tensors are found
SAME_DB = 40.0  # the exported fp32 file and PyTorch agree to 100 dB and more
ALIKE = 0.5  # lowest cosine at which a tensor is taken for a layer's end by its value

Values = Mapping[str, NDArray[Any]]


class Activations(Protocol):
    """A model file whose inner tensors can be read."""

    runtime: str

    def select(self, names: Sequence[str] | None = None) -> None:
        """Read these tensors from now on; None: all."""

    def run(self, ids: list[int], type_ids: list[int]) -> Values:
        """The selected tensors for one row, by name."""


@dataclass(frozen=True)
class MeasureLayers:
    """Measure the layers of a model file.

    Attributes:
        texts: dev rows, a seeded draw spread over labels and lengths.
        seed: of the draw.
    """

    texts: int = 32
    seed: int = 0

    def __call__(
        self,
        checkpoint: Checkpoint,
        fp32: ModelFile,
        model: ModelFile,
        rows: Sequence[Row],
        out: Path,
    ) -> LayerReport:
        """The layers of `model` on some of `rows`; leaves `layers.json` in `out`.

        Args:
            checkpoint: what both files were made of.
            fp32: as exported.
            model: the file to look into.
            rows: of the dev split.
            out: the folder.

        Raises:
            InputError: no row is left of which a layer could be measured.
        """
        chosen = [rows[index] for index in spread(rows, self.texts, self.seed)]
        length = min([*model.info.lengths[:1], model.info.max_length])
        encoded = [row for row in encode_rows(checkpoint.tokenizer, chosen, length) if row.ids]
        if not encoded:
            raise InputError("0 usable rows to measure layers on", "dev split")
        truth = hidden_states(checkpoint, encoded)
        names = _find_exact(open_activations(fp32, checkpoint), encoded, truth)
        reader = open_activations(model, checkpoint)
        # A static TFLite file is converted anew: a name says nothing of the fp32 file's there.
        renamed = (
            model.info.format == "tflite"
            and find_scheme(model.info.scheme.removesuffix(MIXED), "tflite").tool == "nncf"
        )
        tensors = _find(reader, encoded, truth, [[] for _ in names] if renamed else names)
        sums = [_Sums() for _ in names]
        reader.select([tensor for tensor, _ in tensors if tensor])
        for row, states in zip(encoded, truth, strict=True):
            values = reader.run(row.ids, row.type_ids)
            for depth, (tensor, _) in enumerate(tensors):
                if tensor:
                    sums[depth].add(states[depth], _like(values[tensor], states[depth]))
        layers = [
            sums[depth].result("embeddings" if depth == 0 else f"layer {depth}", by_value)
            for depth, (_, by_value) in enumerate(tensors)
        ]
        report = LayerReport(
            format=model.info.format,
            scheme=model.info.scheme,
            texts=len(encoded),
            tokens=sum(len(row.ids) for row in encoded),
            runtime=reader.runtime,
            layers=with_added(layers),
        )
        out.mkdir(parents=True, exist_ok=True)
        (out / "layers.json").write_text(report.model_dump_json(), encoding="utf-8")
        return report


def open_activations(model: ModelFile, checkpoint: Checkpoint) -> Activations:
    """The reader of a model file's inner tensors."""
    if model.info.format == "onnx":
        from edgebert.pipeline.runtimes.onnx_activations import OnnxActivations

        return OnnxActivations(model.file)
    from edgebert.pipeline.runtimes.tflite_activations import TfliteActivations

    pad_id = int(checkpoint.config.pad_token_id or 0)
    return TfliteActivations(model.file, pad_id, checkpoint.family.pads_left)


def hidden_states(checkpoint: Checkpoint, rows: Sequence[Encoded]) -> list[list[NDArray[Any]]]:
    """What the embeddings and each layer give for each row, float32 [seq, hidden]."""
    import torch

    from edgebert.pipeline.stages.load import load_model

    model = load_model(checkpoint)
    found = []
    for row in rows:
        ids = torch.tensor([row.ids])  # [1, seq]
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if checkpoint.has_token_type_ids:
            inputs["token_type_ids"] = torch.tensor([row.type_ids])
        with torch.inference_mode():
            states = model(**inputs, output_hidden_states=True).hidden_states
        found.append([state[0].numpy() for state in states])
    return found


def _find_exact(
    reader: Activations, rows: Sequence[Encoded], truth: Sequence[Sequence[NDArray[Any]]]
) -> list[list[str]]:
    """Of each depth: the tensors of the fp32 file that hold what PyTorch gives."""
    reader.select(None)
    names: list[set[str]] | None = None
    for row, states in zip(rows[:PROBES], truth, strict=False):
        values = reader.run(row.ids, row.type_ids)
        here = [
            {
                name
                for name, value in values.items()
                if (like := _like(value, state)) is not None and _snr_db(state, like) > SAME_DB
            }
            for state in states
        ]
        names = here if names is None else [a & b for a, b in zip(names, here, strict=True)]
    return [sorted(found) for found in names or []]


def _find(
    reader: Activations,
    rows: Sequence[Encoded],
    truth: Sequence[Sequence[NDArray[Any]]],
    names: Sequence[Sequence[str]],
) -> list[tuple[str, bool]]:
    """Of each depth: the tensor, empty where there is none, and whether it was found by value."""
    reader.select(None)
    probes = [
        (states, reader.run(row.ids, row.type_ids))
        for row, states in zip(rows[:PROBES], truth, strict=False)
    ]
    order = list(probes[0][1])
    found: list[tuple[str, bool]] = []
    last = -1
    for depth, candidates in enumerate(names):
        by_name = [
            name
            for name in candidates
            if name in order and _like(probes[0][1][name], probes[0][0][depth]) is not None
        ]
        tensor, by_value = (by_name[0], False) if by_name else ("", False)
        if not tensor:
            likeness = {
                name: min(_cosine(states[depth], values.get(name)) for states, values in probes)
                for name in order[last + 1 :]
            }
            best = max(likeness, key=likeness.__getitem__, default="")
            if best and likeness[best] >= ALIKE:
                tensor, by_value = best, True
        last = order.index(tensor) if tensor else last
        found.append((tensor, by_value))
    return found


def _like(value: NDArray[Any] | None, state: NDArray[Any]) -> Any:
    """A tensor in the shape of a layer's output [seq, hidden]; None where it has another size."""
    same = value is not None and value.size == state.size and value.shape[-1:] == state.shape[-1:]
    if value is None or not same or value.dtype.kind != "f":
        return None
    return value.reshape(state.shape).astype(np.float32)


def _snr_db(truth: NDArray[Any], value: NDArray[Any]) -> float:
    return _decibels(float(np.square(truth).sum()), float(np.square(truth - value).sum()))


def _decibels(signal: float, noise: float) -> float:
    if noise <= 0:
        return EQUAL_DB
    return 10 * float(np.log10(max(signal, 1e-300) / noise)) if np.isfinite(noise) else -EQUAL_DB


def _cosine(truth: NDArray[Any], value: NDArray[Any] | None) -> float:
    """Cosine of two whole tensors; -1 where they cannot be compared."""
    like = _like(value, truth)
    if like is None or not np.isfinite(like).all():
        return -1.0
    norms = float(np.linalg.norm(truth) * np.linalg.norm(like))
    return float((truth * like).sum()) / norms if norms else -1.0


@dataclass
class _Sums:
    """Sums over texts."""

    signal: float = 0.0
    noise: float = 0.0
    cosines: list[NDArray[Any]] = field(default_factory=list)

    def add(self, truth: NDArray[Any], value: NDArray[Any]) -> None:
        truth, value = truth.astype(np.float64), value.astype(np.float64)
        self.signal += float(np.square(truth).sum())
        self.noise += float(np.square(truth - value).sum())
        norms = np.linalg.norm(truth, axis=1) * np.linalg.norm(value, axis=1)
        self.cosines.append((truth * value).sum(axis=1) / np.maximum(norms, 1e-30))

    def result(self, name: str, by_value: bool) -> LayerDrift:
        if not self.cosines:
            return LayerDrift(name=name)
        cosines = np.nan_to_num(np.concatenate(self.cosines), nan=-1.0)
        return LayerDrift(
            name=name,
            snr_db=_decibels(self.signal, self.noise),
            cosine_mean=float(cosines.mean()),
            cosine_min=float(cosines.min()),
            by_value=by_value,
        )


def read_layers(folder: Path) -> LayerReport:
    """The report that a stage left in `folder`."""
    return LayerReport.model_validate_json((folder / "layers.json").read_text(encoding="utf-8"))
