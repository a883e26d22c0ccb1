"""What a build refuses before anything runs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from edgebert.calibration import Dataset
from edgebert.pipeline.bundle import may_replace
from edgebert.pipeline.recipe import AUTO
from edgebert.pipeline.schemes import SCHEMES, find_scheme
from edgebert.targets.errors import InputError

if TYPE_CHECKING:
    from edgebert.pipeline.planning import Plan


def check_plan(plan: "Plan") -> None:
    """Refuse a plan that could not come to its end.

    Raises:
        InputError: a scheme that the target does not have or the data cannot serve, a recipe that
            trains without data, data without a split, or a bundle folder that cannot be written.
    """
    _check_schemes(plan)
    _check_training(plan)
    _check_splits(plan.data)
    _check_out(plan.out)


def _check_schemes(plan: "Plan") -> None:
    """Refuse schemes that none of the formats has, or that need texts where there are none."""
    for format in plan.formats:
        for name in plan.candidates(format):
            scheme = find_scheme(name, format)
            if scheme.trained and not plan.recipe.trains_quantizers:
                cure = "add [quantize_aware] to the recipe, or choose another scheme"
                raise InputError(f"{name} needs quantization-aware training", "", cure)
            if scheme.calibrated and plan.data is None and plan.recipe.quantize.scheme != AUTO:
                cure = "give --data, or leave out --no-validate"
                raise InputError(f"{name} needs calibration texts", "", cure)
    for name in plan.recipe.quantize.candidates:
        formats = [format for scheme in SCHEMES if scheme.name == name for format in scheme.formats]
        if not set(formats) & set(plan.formats):
            find_scheme(name, plan.formats[0])


def _check_training(plan: "Plan") -> None:
    """Refuse a recipe that trains where there is nothing to learn from."""
    recipe = plan.recipe
    if recipe.recover is not None and recipe.distill is None and not recipe.prune.wanted:
        raise InputError(
            "recover trains what was pruned or distilled, and the recipe does neither",
            f"recipe {recipe.name}",
            "add [prune] or [distill], or take [recover] out",
        )
    if recipe.trains and (plan.data is None or not plan.data.train):
        raise InputError(
            f"recipe {recipe.name} trains, and there are no train rows",
            plan.data.name if plan.data else "",
            "give --data with a train split, or another --recipe",
        )


def _check_splits(data: Dataset | None) -> None:
    """Refuse data that leaves nothing to choose or to judge by."""
    if data is None:
        return
    for split in ("dev", "test"):
        if not data.split(split):
            rows = f"{len(data.train)} train, {len(data.dev)} dev, {len(data.test)} test rows"
            raise InputError(
                f"no {split} rows: the drift could not be measured",
                f"{data.name}: {rows}",
                f"add a {split} file, or more rows (a single file is split 80/10/10)",
            )


def _check_out(out: Path) -> None:
    """Refuse a bundle folder that could not be written at the end."""
    if out.exists():
        may_replace(out)
    folder = next(folder for folder in out.absolute().parents if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        reason = "no write permission" if folder.is_dir() else "not a folder"
        raise InputError(f"cannot write the bundle: {reason}", str(folder), "give another --out")
