"""What the Android app leaves of a run: `android_demo/measurement.schema.json` as types.

Times in milliseconds, memory in MB (1e6 bytes). What a device does not tell is None, never 0.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, model_validator

from edgebert.targets import Format

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Thermal = Literal["none", "light", "moderate", "severe", "critical", "emergency", "shutdown"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class App(_Part):
    """The app, and the runtime in it (`onnxruntime 1.29.0`)."""

    version: str
    build_type: Literal["debug", "release"]
    runtime: str | None


class Device(_Part):
    """What ran it; `host` is a test on a desktop machine."""

    kind: Literal["phone", "emulator", "host"]
    manufacturer: str
    model: str
    soc: str | None
    abi: str
    cores: int = Field(ge=1)
    android: str | None
    api_level: int | None
    governor: str | None
    max_mhz: int | None


class State(_Part):
    """Heat, battery and memory (proportional set size) at one moment."""

    thermal_status: Thermal | None
    battery_percent: int | None
    battery_celsius: float | None
    charging: bool | None
    power_save: bool | None
    pss_mb: float | None


class GoldenCheck(_Part):
    """The golden texts on the device; `max_abs` is the largest difference of a logit."""

    passed: bool
    format: Format
    runtime: str
    rows: int
    max_abs: float
    tolerance: float
    faults: tuple[str, ...] = Field(max_length=100)


class Run(_Part):
    """One model file at one number of threads, batch 1.

    Attributes:
        rule_met: at least 1,024 inferences and at least 60 s.
        fp32_p50_ms: of the fp32 file, measured in turns with this one.
    """

    file: str
    file_sha256: Sha256
    scheme: str
    runtime: str
    machine: str
    tokens: int = Field(ge=1)
    threads: int = Field(ge=1)
    warmups: int
    runs: int = Field(ge=1)
    seconds: float
    rule_met: bool
    load_ms: float
    first_run_ms: float
    mean_ms: float
    min_ms: float
    max_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    bare_mb: float | None
    peak_mb: float | None
    fp32_p50_ms: float | None


class Origin(_Part):
    """What rows were run with."""

    bundle: str
    format: Format
    runtime: str
    padding: str
    machine: str


class RowLogits(_Part):
    """Logits of one text: [labels], or [tokens][labels]."""

    id: int
    logits: tuple[JsonValue, ...]
    truncated: bool


class Settings(_Part):
    """How long was measured."""

    tokens: int = Field(ge=1)
    warmups: int = Field(ge=0)
    min_inferences: int = Field(ge=1)
    min_seconds: float = Field(ge=0)
    max_seconds: float = Field(ge=0)
    sustained_seconds: float = Field(ge=0)


class TokenizerTimes(_Part):
    """The tokenizer alone, on the golden texts."""

    load_ms: float
    texts: int
    runs: int
    p50_ms: float
    p90_ms: float
    p99_ms: float


class Window(_Part):
    """A part of a sustained run."""

    from_seconds: float
    runs: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    state: State


class Sustained(_Part):
    """Inferences without a pause; `slowdown` is p50 of the last window over that of the first."""

    file: str
    threads: int
    seconds: float
    runs: int
    slowdown: float
    windows: tuple[Window, ...]


class States(_Part):
    """Before, at the end of each run, and after."""

    before: State
    during: tuple[State, ...]
    after: State


def _kind(answer: Any) -> str:
    """Which answer it is, by a field that no other has; so that a fault names its field."""
    names = answer if isinstance(answer, dict) else vars(answer) if answer else {}
    kinds = {"passed": "golden", "file": "run", "id": "row"}
    return next((kind for name, kind in kinds.items() if name in names), "origin")


Answer = Annotated[
    Annotated[GoldenCheck, Tag("golden")]
    | Annotated[Run, Tag("run")]
    | Annotated[RowLogits, Tag("row")]
    | Annotated[Origin, Tag("origin")],
    Discriminator(_kind),
]


class PhoneResult(_Part):
    """One run of the app.

    Attributes:
        bundle: SHA-256 of manifest.json; None where it could not be read.
        valid: False where it is not to be quoted as the latency of a phone.
        golden: of a measurement, the golden texts before it.
        answers: what run.py prints for the same job, and more; empty where there is an error.
        error, code: why there is no result, and run.py's exit code of that.
    """

    schema_version: Literal[1]
    kind: Literal["golden", "measure", "rows"]
    started_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    app: App
    device: Device
    bundle: Sha256 | None
    bundle_name: str
    model: str | None
    target: str | None
    error: str | None = None
    code: Literal[2, 3] | None = None
    valid: bool
    invalid_because: tuple[str, ...]
    golden: GoldenCheck | None
    settings: Settings | None
    answers: tuple[Answer, ...]
    tokenizer: TokenizerTimes | None
    sustained: Sustained | None
    states: States

    @model_validator(mode="after")
    def _error_has_a_code(self) -> "PhoneResult":
        if (self.error is None) != (self.code is None):
            raise ValueError("error and code come together")
        return self

    @property
    def runs(self) -> tuple[Run, ...]:
        """What was measured."""
        return tuple(answer for answer in self.answers if isinstance(answer, Run))
