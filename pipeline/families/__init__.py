"""The architectures: one module each, found by the `model_type` of the configuration."""

import importlib
import pkgutil

from edgebert.pipeline.families.family import Family
from edgebert.targets.errors import InputError

__all__ = ["Family", "all_families", "find_family"]


def all_families() -> dict[str, Family]:
    """Every family by `model_type`, in alphabetical order of its module."""
    names = sorted(
        module.name for module in pkgutil.iter_modules(__path__) if module.name != "family"
    )
    families = [importlib.import_module(f"{__name__}.{name}").FAMILY for name in names]
    return {family.model_type: family for family in families}


def find_family(model_type: str, where: str = "") -> Family:
    """The family of a configuration.

    Raises:
        InputError: no family has that `model_type`.
    """
    families = all_families()
    if model_type not in families:
        raise InputError(
            f"no family for model_type '{model_type}'", where, f"known: {', '.join(families)}"
        )
    return families[model_type]
