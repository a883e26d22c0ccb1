"""The folders that flow between stages; none is edited once it is made."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from edgebert.pipeline.families import Family, find_family
from edgebert.targets import Format
from edgebert.targets.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedConfig

Task = Literal["single_label", "multi_label", "regression", "token"]


# Ranges that quantization-aware training has learned, beside the weights of a checkpoint.
RANGES = "quantizers.safetensors"


def sha256_of(*files: Path) -> str:
    """Hash over names and contents of files, in the order given."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0")
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """A Hugging Face folder: config.json, model.safetensors, tokenizer files.

    Attributes:
        path: the folder.
        name: what reports call it.
    """

    path: Path
    name: str

    @cached_property
    def config(self) -> "PreTrainedConfig":
        """The configuration, as transformers reads it."""
        from transformers import AutoConfig

        return AutoConfig.from_pretrained(self.path, local_files_only=True)

    @property
    def family(self) -> Family:
        """The family, from the configuration and never from the name."""
        return find_family(self.config.model_type, str(self.path / "config.json"))

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names in the order of their ids.

        Raises:
            InputError: the ids are not 0..n-1.
        """
        names = {int(key): str(value) for key, value in (self.config.id2label or {}).items()}
        if sorted(names) != list(range(len(names))):
            raise InputError(
                f"id2label has the ids {sorted(names)}, not 0..{len(names) - 1}",
                str(self.path / "config.json"),
            )
        return tuple(names[index] for index in range(len(names)))

    @property
    def task(self) -> Task:
        """What the head is for, from `architectures`, `problem_type` and the number of labels."""
        architectures = self.config.architectures or []
        if any(name.endswith("ForTokenClassification") for name in architectures):
            return "token"
        if self.config.problem_type == "multi_label_classification":
            return "multi_label"
        if self.config.problem_type == "regression" or self.config.num_labels == 1:
            return "regression"
        return "single_label"

    @property
    def max_length(self) -> int:
        """Longest input in tokens, special tokens included."""
        return self.family.max_length(self.config)

    @property
    def shares_layers(self) -> bool:
        """True where several depths are one layer (ALBERT)."""
        depths = int(getattr(self.config, "num_hidden_layers", 0) or 0)
        return int(getattr(self.config, "num_hidden_groups", None) or depths) < depths

    @property
    def has_token_type_ids(self) -> bool:
        """True where the model tells the two texts of a pair apart by token types."""
        return self.family.has_token_type_ids(self.config)

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer as every stage and device uses it: no truncation or padding set."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.path / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def sha256(self) -> str:
        """Hash over the files that decide what the model computes."""
        names = ("config.json", "model.safetensors", "tokenizer.json")
        ranges = self.path / RANGES
        files = [*(self.path / name for name in names), *([ranges] if ranges.exists() else [])]
        return sha256_of(*files)


@dataclass(frozen=True)
class TokenRow:
    """One tokenized text, special tokens included and not padded; what calibration is fed with.

    Attributes:
        ids: token ids, at most the model's `max_length`.
        type_ids: token types, one a token.
    """

    ids: tuple[int, ...]
    type_ids: tuple[int, ...]


class TensorSpec(BaseModel):
    """An input or output of a model file; a dimension is a number or the name of a dynamic one."""

    model_config = ConfigDict(frozen=True)

    name: str
    dtype: str
    shape: tuple[int | str, ...]


class ModelInfo(BaseModel):
    """What a model file is, kept as model.json beside it.

    Attributes:
        format: `onnx` or `tflite`.
        scheme: quantization scheme, `fp32` as exported.
        inputs, outputs: of the ONNX graph, or of the TFLite signature of the longest length.
        lengths: token lengths of the TFLite signatures, ascending; empty where the length is
            dynamic.
        max_length: longest input in tokens.
        operators: operator -> newest version used.
        opset: default-domain opset, and IR version of an ONNX file; None for TFLite.
        minimum_runtime: runtime and its lowest version that has the operators, empty when
            unknown.
    """

    model_config = ConfigDict(frozen=True)

    format: Format
    scheme: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    lengths: tuple[int, ...] = ()
    max_length: int
    operators: dict[str, int] = {}
    opset: int | None = None
    ir_version: int | None = None
    minimum_runtime: str = ""


class ModelFile(Protocol):
    """A model file and what it is, in a stage's folder or in a bundle."""

    @property
    def file(self) -> Path:
        """The model file."""

    @property
    def info(self) -> ModelInfo:
        """What it is."""


@dataclass(frozen=True)
class Model:
    """A folder with one model file, `model.onnx` or `model.tflite`, and `model.json`."""

    path: Path

    @cached_property
    def info(self) -> ModelInfo:
        """What the file is."""
        return ModelInfo.model_validate_json((self.path / "model.json").read_text(encoding="utf-8"))

    @property
    def file(self) -> Path:
        """The model file."""
        return self.path / f"model.{self.info.format}"

    @property
    def size_mb(self) -> float:
        """Size of the model with its external data, in MB (1e6 bytes)."""
        return sum(f.stat().st_size for f in self.path.glob("model.*") if f.suffix != ".json") / 1e6

    @cached_property
    def sha256(self) -> str:
        """Hash over the model file, its external data and its description."""
        return sha256_of(*sorted(self.path.glob("model.*")))

    @classmethod
    def write_info(cls, folder: Path, info: ModelInfo) -> "Model":
        """Describe the model file that a stage left in `folder`."""
        text = json.dumps(info.model_dump(mode="json"), indent=2, sort_keys=True)
        (folder / "model.json").write_text(text + "\n", encoding="utf-8")
        return cls(folder)


def dotted(root: object, path: str) -> Any:
    """Follow an attribute path such as `bert.encoder.layer`."""
    for name in path.split("."):
        root = getattr(root, name)
    return root
