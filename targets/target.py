"""A target: a device class with its runtime, formats, limits and budgets; one TOML file each.

The shipped ones lie beside this module; a user's own TOML file works the same way.
"""

from importlib import resources
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgebert.targets.errors import InputError
from edgebert.targets.toml_folder import TomlFolder, line_of, parse_toml

Format = Literal["onnx", "tflite"]
FORMATS: tuple[Format, ...] = ("onnx", "tflite")
PositiveInt = Annotated[int, Field(gt=0)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OnnxTarget(_Table):
    """What the target's onnxruntime takes.

    Attributes:
        runtime: PyPI requirement of the runtime on the device.
        max_opset: newest default-domain opset the runtime implements.
        max_ir_version: newest ONNX IR version the runtime reads.
        candidates: quantization schemes that `auto` tries, fastest first.
    """

    runtime: str
    max_opset: PositiveInt
    max_ir_version: PositiveInt
    candidates: tuple[str, ...] = Field(min_length=1)


class TfliteTarget(_Table):
    """What the target's LiteRT or TFLite takes.

    Attributes:
        runtime: PyPI requirement of the runtime on the device.
        module: Python module of the interpreter, `ai_edge_litert` or `tflite_runtime`.
        max_op_versions: newest version of an operator the runtime implements, where it is limited.
        candidates: quantization schemes that `auto` tries, fastest first.
    """

    runtime: str
    module: Literal["ai_edge_litert", "tflite_runtime"] = "ai_edge_litert"
    max_op_versions: dict[str, PositiveInt] = {}
    candidates: tuple[str, ...] = Field(min_length=1)


class Target(_Table):
    """A device class.

    Attributes:
        name: the name users give to `--target`.
        description: what devices it stands for.
        arch: machine name as the device's `uname -m` gives it.
        lengths: token lengths a TFLite file is built for, ascending; ONNX keeps its length dynamic.
        threads: threads an inference uses.
        max_size_mb: budget of one model file in MB (1e6 bytes), or None.
        max_latency_ms: budget of the median latency at the first length, or None. It is judged
            only where the machine that measures is the target.
        max_drop: largest drop of the task metric against the fp32 checkpoint (a fraction).
        onnx, tflite: the formats the target runs.
    """

    name: str
    description: str
    arch: Literal["aarch64", "armv7l", "x86_64"]
    lengths: tuple[PositiveInt, ...] = (32, 64, 128)
    threads: PositiveInt = 1
    max_size_mb: float | None = Field(default=None, gt=0)
    max_latency_ms: float | None = Field(default=None, gt=0)
    max_drop: float = Field(default=0.01, ge=0, lt=1)
    onnx: OnnxTarget | None = None
    tflite: TfliteTarget | None = None

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats this target runs, ONNX first."""
        return tuple(name for name in FORMATS if getattr(self, name) is not None)

    def table(self, format: Format) -> OnnxTarget | TfliteTarget:
        """What the target takes in one of its formats."""
        table = self.onnx if format == "onnx" else self.tflite
        assert table is not None
        return table

    @property
    def old_runtime(self) -> str:
        """The TFLite runtime's requirement where it is not LiteRT, else empty."""
        if self.tflite is None or self.tflite.module == "ai_edge_litert":
            return ""
        return self.tflite.runtime


SHIPPED = TomlFolder("target", resources.files("edgebert.targets"))


def load_target(name_or_file: str) -> Target:
    """Read a shipped target by name, or a user's own TOML file by path.

    Raises:
        InputError: unknown name (with the nearest ones), unreadable or malformed file; with the
            line where there is one.
    """
    text = SHIPPED.text(name_or_file)
    try:
        target = Target.model_validate(parse_toml(text, name_or_file))
    except ValidationError as error:
        where = f"{name_or_file}{line_of(text, error.errors()[0]['loc'])}"
        raise SHIPPED.error(error, where) from error
    if not target.formats:
        raise InputError("a target needs [onnx], [tflite] or both", name_or_file)
    return target


def target_names() -> list[str]:
    """Names of the shipped targets."""
    return SHIPPED.names()


def target_text(name_or_file: str) -> str:
    """The TOML of a target, to start one's own from."""
    return SHIPPED.text(name_or_file)
