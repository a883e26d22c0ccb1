"""Device classes: one TOML file each, and the loader."""

from edgebert.targets.target import (
    FORMATS,
    Format,
    OnnxTarget,
    Target,
    TfliteTarget,
    load_target,
    target_names,
    target_text,
)

__all__ = [
    "FORMATS",
    "Format",
    "OnnxTarget",
    "Target",
    "TfliteTarget",
    "load_target",
    "target_names",
    "target_text",
]
