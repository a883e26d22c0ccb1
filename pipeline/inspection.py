"""Inspect: what is in a bundle or a checkpoint: sizes, parameters, operators, precision."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.bundle import MANIFEST, Bundle
from edgebert.pipeline.layers import LayerReport
from edgebert.pipeline.runtimes.stored_tensor import StoredTensor
from edgebert.targets import Format
from edgebert.targets.errors import InputError

LARGEST = 8  # tensors shown of each file


class _Found(BaseModel):
    model_config = ConfigDict(frozen=True)


class TensorSize(_Found):
    """One stored tensor; `operator` reads it (empty in a checkpoint)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    operator: str = ""

    def text(self) -> str:
        """For people."""
        dimensions = "x".join(map(str, self.shape))
        read_by = f"  ({self.operator})" if self.operator else ""
        return (
            f"  {self.bytes / 1e6:8.3f} MB  {self.dtype:<8} {dimensions:<14} {self.name}{read_by}"
        )


class FileInspection(_Found):
    """One weights file.

    Attributes:
        file: its name.
        scheme: quantization scheme.
        bytes: its size, external data included.
        bytes_by_dtype: stored weights, by precision.
        bytes_by_operator: stored weights, by the operator that reads them, largest first; what
            several read counts once. Empty for a checkpoint.
        largest: the largest tensors.
        operators: operator -> newest version used; empty for a checkpoint.
        minimum_runtime: runtime and its lowest version that runs it.
    """

    file: str
    scheme: str
    bytes: int
    bytes_by_dtype: dict[str, int]
    bytes_by_operator: dict[str, int] = {}
    largest: tuple[TensorSize, ...]
    operators: dict[str, int] = {}
    minimum_runtime: str = ""


class Inspection(_Found):
    """What was found.

    Attributes:
        kind: which of the two it is.
        name, family, task: of the model.
        parameters: shared ones once.
        labels: how many.
        max_length: longest input in tokens.
        passed: whether the gates of a bundle held; None for a checkpoint, or without proof.
        files: the weights files.
        layers: where the drift of each model file arises, where that was asked for.
    """

    kind: Literal["bundle", "checkpoint"]
    name: str
    family: str
    task: str
    parameters: int
    labels: int
    max_length: int
    passed: bool | None = None
    files: tuple[FileInspection, ...]
    layers: tuple[LayerReport, ...] = ()

    def text(self) -> str:
        """For people; the layers alone where they were asked for."""
        verdict = {True: "passed", False: "FAILED", None: "without proof"}[self.passed]
        lines = [
            f"{self.kind} {self.name}: {self.family}, {self.task}, {self.parameters:,} parameters, "
            f"{self.labels} labels, at most {self.max_length} tokens"
            + (f", gates {verdict}" if self.kind == "bundle" else "")
        ]
        if self.layers:
            return "\n\n".join([*lines, *(layers.text() for layers in self.layers)])
        for file in self.files:
            stored = ", ".join(
                f"{dtype} {size / 1e6:.2f} MB" for dtype, size in file.bytes_by_dtype.items()
            )
            lines.append(
                f"\n{file.file}: {file.scheme}, {file.bytes / 1e6:.2f} MB (weights: {stored})"
            )
            lines += [tensor.text() for tensor in file.largest]
            if file.bytes_by_operator:
                sizes = ", ".join(
                    f"{name} {size / 1e6:.3f} MB" for name, size in file.bytes_by_operator.items()
                )
                lines.append(f"  weights by operator: {sizes}")
            if file.operators:
                used = ", ".join(f"{name} v{version}" for name, version in file.operators.items())
                lines.append(f"  operators: {used}")
            if file.minimum_runtime:
                lines.append(f"  needs at least {file.minimum_runtime}")
        return "\n".join(lines)


def inspect_path(path: Path, layers: bool = False) -> Inspection:
    """Look into a bundle or a checkpoint folder.

    Args:
        path: the folder.
        layers: also where the drift of a bundle arises, as its build measured it.

    Raises:
        InputError: it is neither, a file of it is damaged, or the layers were not measured.
    """
    if (path / MANIFEST).is_file():
        inspection = _bundle(Bundle.open(path))
        return inspection.model_copy(update={"layers": _layers(path)}) if layers else inspection
    if layers and (path / "config.json").is_file():
        raise InputError(
            "a checkpoint is what layers are compared with", str(path), "name a bundle"
        )
    if (path / "config.json").is_file():
        return _checkpoint(path)
    raise InputError(
        "neither a bundle (manifest.json) nor a checkpoint (config.json)",
        str(path),
        "name the folder that holds one",
    )


def _bundle(bundle: Bundle) -> Inspection:
    manifest = bundle.manifest
    files = []
    for format in bundle.formats:
        entry, file = bundle.info(format), bundle.file(format)
        files.append(
            _file(file, entry.scheme, _stored(format, file)).model_copy(
                update={"operators": entry.operators, "minimum_runtime": entry.minimum_runtime}
            )
        )
    return Inspection(
        kind="bundle",
        name=manifest.model,
        family=manifest.family,
        task=manifest.task,
        parameters=manifest.parameters,
        labels=len(manifest.labels),
        max_length=max(bundle.info(format).max_length for format in bundle.formats),
        passed=manifest.passed,
        files=tuple(files),
    )


def _layers(path: Path) -> tuple[LayerReport, ...]:
    from edgebert.pipeline.stages.report import read_report

    layers = read_report(path).layers
    if not layers:
        raise InputError(
            "the layers of this bundle were not measured: it was built without data",
            str(path / "report.json"),
            "build it with --data, and the build measures them",
        )
    return layers


def _checkpoint(path: Path) -> Inspection:
    checkpoint = Checkpoint(path, path.resolve().name)
    try:
        family, labels = checkpoint.family.model_type, len(checkpoint.labels)
    except InputError:
        raise
    except Exception as error:  # transformers has exceptions of its own
        reason = " ".join(str(error).split())[:200]
        config = str(path / "config.json")
        raise InputError(f"not a valid configuration: {reason}", config) from error
    files, parameters = [], 0
    for file in sorted(path.glob("*.safetensors")):
        stored = _safetensors(file)
        parameters += sum(math.prod(tensor.shape) for tensor in stored)
        files.append(_file(file, "checkpoint", stored))
    if not files:
        raise InputError(
            "no .safetensors file", str(path), "load it once with transformers and save it"
        )
    return Inspection(
        kind="checkpoint",
        name=checkpoint.name,
        family=family,
        task=checkpoint.task,
        parameters=parameters,
        labels=labels,
        max_length=checkpoint.max_length,
        files=tuple(files),
    )


def _safetensors(file: Path) -> list[TensorSize]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), "np") as tensors:
            slices = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        cure = "save or download the model again"
        raise InputError(f"not whole: {error}", str(file), cure) from error
    return [
        TensorSize(
            name=name,
            dtype=part.get_dtype(),
            shape=tuple(part.get_shape()),
            bytes=math.prod(part.get_shape()) * _bits(part.get_dtype()) // 8,
        )
        for name, part in slices.items()
    ]


def _bits(dtype: str) -> int:
    """Bits of a safetensors type: F32, BF16, I64, U8, BOOL, F8_E4M3, ..."""
    digits = re.search(r"\d+", dtype)
    return int(digits[0]) if digits else 8


def _stored(format: Format, file: Path) -> list[TensorSize]:
    stored: Sequence[StoredTensor]
    if format == "onnx":
        from edgebert.pipeline.runtimes.onnx_file import load_proto, stored_tensors

        stored = stored_tensors(load_proto(file))
    else:
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile

        stored = TfliteFile(file).stored
    return [
        TensorSize(
            name=t.name, dtype=t.dtype, shape=t.shape, bytes=t.size_bytes, operator=t.operator
        )
        for t in stored
    ]


def _file(file: Path, scheme: str, stored: list[TensorSize]) -> FileInspection:
    by_dtype: Counter[str] = Counter()
    by_operator: Counter[str] = Counter()
    for tensor in stored:
        by_dtype[tensor.dtype] += tensor.bytes
        if tensor.operator:
            by_operator[tensor.operator] += tensor.bytes
    data = file.with_name(f"{file.name}.data")
    ordered = sorted(stored, key=lambda tensor: (-tensor.bytes, tensor.name))
    return FileInspection(
        file=file.name,
        scheme=scheme,
        bytes=sum(part.stat().st_size for part in (file, data) if part.exists()),
        bytes_by_dtype=dict(sorted(by_dtype.items())),
        bytes_by_operator=dict(by_operator.most_common()),
        largest=tuple(ordered[:LARGEST]),
    )
