"""A recipe: the settings of a build's stages, from TOML, checked before anything runs."""

import tomllib
from collections.abc import Sequence
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as settings

from edgebert.pipeline.training_settings import (
    DistillOptions,
    DistillSettings,
    QuantizeAwareSettings,
)
from edgebert.targets.errors import InputError
from edgebert.targets.toml_folder import TomlFolder, field_path, line_of, parse_toml

AUTO = "auto"
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class _Stage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CalibrationSettings(_Stage):
    """Texts that static quantization sees.

    Attributes:
        rows: how many, drawn from the train split.
        seed: of the draw.
    """

    rows: int = Field(default=128, ge=1)
    seed: Seed = 0


@settings(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class DistillStage(DistillOptions):
    """A student of another shape, which learns from the model.

    Attributes:
        student: as for `edgebert distill --student`.
        unlabeled: more texts: a file, a folder, or the name of a shipped data set.
    """

    student: str
    unlabeled: str = ""


def _check_kept(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if not whole and not (isinstance(value, float) and 0 < value < 1):
        raise ValueError("give how many are kept, from 1, or a share between 0.0 and 1.0")
    return value


Kept = Annotated[int | float, BeforeValidator(_check_kept)]


class PruneSettings(_Stage):
    """What is kept of the model; nothing is pruned that is not named.

    Attributes:
        heads: attention heads of a layer: an integer is how many are kept, a number with a point
            the share (0.75 of 12 keeps 9).
        ffn: neurons of a feed-forward network, in the same way.
        layers: layers, in the same way.
        vocabulary: keep the tokens that the train texts use, and what spells any other text.
        embedding_size: numbers of a stored word vector, by singular value decomposition.
        importance: `taylor` on train texts, or `magnitude`, which is taken where there is no data.
        rows: texts that importance is measured on, drawn from the train split.
        seed: of the draw.
    """

    heads: Kept | None = None
    ffn: Kept | None = None
    layers: Kept | None = None
    vocabulary: bool = False
    embedding_size: int | None = Field(default=None, ge=1)
    importance: Literal["taylor", "magnitude"] = "taylor"
    rows: int = Field(default=256, ge=1)
    seed: Seed = 0

    @property
    def wanted(self) -> bool:
        """True where anything is pruned."""
        sizes = (self.heads, self.ffn, self.layers, self.embedding_size)
        return self.vocabulary or any(size is not None for size in sizes)


def _check_layers(value: Any) -> Any:
    patterns = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if value != AUTO and not patterns:
        raise ValueError(
            'give "auto" or a list of layers, such as ["classifier", "*.output.dense"]'
        )
    return value


class QuantizeSettings(_Stage):
    """Which scheme.

    Attributes:
        scheme: a scheme's name, or `auto`: the target's candidates in their order, the first that
            passes.
        candidates: what `auto` tries in place of the target's own; empty: the target's.
        exhaustive: try the candidates after the first that passes too, so that the report compares
            them.
        fp32_layers: layers that are left in fp32, by the checkpoint's names or patterns of them
            (`*` stands for anything); or `auto`: where a scheme drops too much, as few of its
            costliest layers as hold the limit on the dev rows.
        fp32_share: largest share of the layers that `auto` leaves in fp32, before it goes on to the
            next scheme.
        sensitivity_rows: dev texts that the cost of each layer is measured on.
    """

    scheme: str = AUTO
    candidates: tuple[str, ...] = ()
    exhaustive: bool = False
    fp32_layers: Annotated[Literal["auto"] | tuple[str, ...], BeforeValidator(_check_layers)] = ()
    fp32_share: float = Field(default=0.5, gt=0, le=1)
    sensitivity_rows: int = Field(default=128, ge=1)


class ValidateSettings(_Stage):
    """Rows that drift is measured on.

    Attributes:
        dev_rows: most rows of the dev split that a scheme is chosen by; 0: all.
        test_rows: most rows of the test split that the verdict is given on; 0: all.
        device_rows: most of them that an emulated machine is asked for (`--validate-on`).
        seed: of the draws and of the bootstrap.
    """

    dev_rows: int = Field(default=500, ge=0)
    test_rows: int = Field(default=0, ge=0)
    device_rows: int = Field(default=100, ge=1)
    seed: Seed = 0


class MeasureSettings(_Stage):
    """How latency is measured.

    Attributes:
        runs: timed runs.
        warmups: runs before them.
    """

    runs: int = Field(default=50, ge=1)
    warmups: int = Field(default=5, ge=0)


class GateSettings(_Stage):
    """Limits of the build; None takes the target's.

    Attributes:
        max_drop: largest drop of the task metric, a fraction.
        max_size_mb: largest model file in MB (1e6 bytes).
        max_latency_ms: longest median latency in ms.
        confident: demand that the drop is below its limit with 95 % confidence: too few rows fail.
    """

    max_drop: float | None = Field(default=None, ge=0, lt=1)
    max_size_mb: float | None = Field(default=None, gt=0)
    max_latency_ms: float | None = Field(default=None, gt=0)
    confident: bool = False


class ReportSettings(_Stage):
    """What the report shows.

    Attributes:
        texts: whether texts of the data are in the reports and in golden.jsonl; without them a
            device proves itself by edgebert's own texts.
    """

    texts: bool = True


class Recipe(_Stage):
    """The settings of every stage of a build.

    Attributes:
        name: what reports call it.
        description: what it is for.
        distill: None leaves the model's shape as it is.
        recover: train what was pruned, or distilled, once more, with the model as its teacher; None
            leaves it out.
        quantize_aware: train once more with fake quantizers; None, or 0 epochs, leaves it out.
    """

    name: str
    description: str = ""
    distill: DistillStage | None = None
    prune: PruneSettings = PruneSettings()
    recover: DistillSettings | None = None
    quantize_aware: QuantizeAwareSettings | None = None
    calibration: CalibrationSettings = CalibrationSettings()
    quantize: QuantizeSettings = QuantizeSettings()
    validate_: ValidateSettings = Field(default=ValidateSettings(), alias="validate")
    measure: MeasureSettings = MeasureSettings()
    gates: GateSettings = GateSettings()
    report: ReportSettings = ReportSettings()

    @property
    def trains(self) -> bool:
        """True where a stage learns from the train rows."""
        return any((self.distill, self.recover, self.trains_quantizers))

    @property
    def trains_quantizers(self) -> bool:
        """True where the model is trained with fake quantizers."""
        return self.quantize_aware is not None and self.quantize_aware.epochs > 0


SHIPPED = TomlFolder("recipe", resources.files("edgebert.pipeline") / "recipes")


def recipe_names() -> list[str]:
    """Names of the shipped recipes."""
    return SHIPPED.names()


def recipe_text(name_or_file: str) -> str:
    """The TOML of a recipe, to start one's own from."""
    return SHIPPED.text(name_or_file)


def load_recipe(name_or_file: str, overrides: Sequence[str] = ()) -> Recipe:
    """Read a shipped recipe or a user's own TOML file, and apply `stage.key=value` overrides.

    Raises:
        InputError: unknown name, unreadable or malformed file, a setting that does not exist or has
            the wrong type; with the line where there is one.
    """
    text = SHIPPED.text(name_or_file)
    document = parse_toml(text, name_or_file)
    for override in overrides:
        _override(document, override)
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:
        path = field_path(error)
        set_by = next((item for item in overrides if item.startswith(".".join(path) + "=")), None)
        where = f"--set {set_by}" if set_by else f"{name_or_file}{line_of(text, path)}"
        raise SHIPPED.error(error, where) from error


def _override(document: dict[str, Any], override: str) -> None:
    """Apply one `stage.key=value`; the value is TOML, or a bare word that is taken as a string."""
    path, equals, value = override.partition("=")
    stage, dot, key = path.strip().partition(".")
    if not (equals and dot and stage and key):
        raise InputError(f"cannot read --set {override}", "", "write --set stage.key=value")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    table = document.setdefault(stage, {})
    if not isinstance(table, dict):
        raise InputError(f"'{stage}' is no stage", f"--set {override}")
    table[key] = parsed
