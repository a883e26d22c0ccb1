"""What a user asks of a build."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from edgebert.targets import Format


@dataclass(frozen=True)
class BuildRequest:
    """What a user asks for.

    Attributes:
        model: a catalogue name, a local folder or a hub id.
        target: a target's name, or a TOML file.
        data: a file, a folder, or the name of a shipped data set; None: what the model is shipped
            with.
        recipe: a recipe's name, or a TOML file.
        out: where the bundle goes; None: `artifacts/<model>-<target>`.
        max_drop: largest drop of the task metric, a fraction; None: the recipe's or the target's.
        max_size_mb: largest model file in MB (1e6 bytes).
        max_latency_ms: longest median latency in ms, measured on this machine.
        formats: the formats to build; empty: all that the target runs.
        overrides: `stage.key=value` settings over the recipe's.
        validate: False builds without data and without proof.
        allow_pickle: read pytorch_model.bin where there is no model.safetensors.
        texts: False keeps texts of the data out of the reports and of golden.jsonl.
        validate_on: runners that the finished bundle is validated on too.
        init_random: build a catalogue entry at its real size with made-up weights.
    """

    model: str
    target: str
    data: str | None = None
    recipe: str = "balanced"
    out: Path | None = None
    max_drop: float | None = None
    max_size_mb: float | None = None
    max_latency_ms: float | None = None
    formats: tuple[Format, ...] = ()
    overrides: tuple[str, ...] = ()
    validate: bool = True
    allow_pickle: bool = False
    init_random: bool = False
    texts: bool = True
    validate_on: tuple[str, ...] = ()

    def command_line(self) -> str:
        """The command that makes the same bundle again; where it goes is not part of it."""
        pairs = [
            ("--model", self.model),
            ("--target", self.target),
            ("--data", self.data),
            ("--recipe", None if self.recipe == "balanced" else self.recipe),
            ("--max-drop", self.max_drop),
            ("--max-size", self.max_size_mb),
            ("--max-latency", self.max_latency_ms),
            *(("--format", format) for format in self.formats),
            *(("--set", override) for override in self.overrides),
            *(("--validate-on", runner) for runner in self.validate_on),
            ("--init", "random" if self.init_random else None),
        ]
        words = [str(word) for pair in pairs if pair[1] is not None for word in pair]
        switches = {
            "--no-validate": not self.validate,
            "--allow-pickle": self.allow_pickle,
            "--no-texts": not self.texts,
        }
        return shlex.join(
            ["edgebert", "build", *words, *(name for name, given in switches.items() if given)]
        )
