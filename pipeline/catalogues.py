"""The three catalogues as text: models, targets and recipes."""

import json
from collections.abc import Sequence

from edgebert.pipeline.catalogue import CatalogueEntry, find_entry, load_catalogue
from edgebert.pipeline.recipe import load_recipe, recipe_names, recipe_text
from edgebert.targets import load_target, target_names, target_text


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; numbers to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.rjust(width) if cell.replace(",", "").isdigit() else cell.ljust(width)
            for cell, width in zip(cells, widths, strict=True)
        ]
        return "  ".join(aligned).rstrip()

    return "\n".join(line(row) for row in (header, *rows))


def models_table(name: str | None = None, as_json: bool = False) -> str:
    """Every model with exact parameter counts, or all that is known of one.

    Raises:
        InputError: unknown name, with the nearest ones.
    """
    entries = [find_entry(name)] if name else list(load_catalogue().values())
    if as_json:
        return json.dumps(
            [entry.model_dump(mode="json") for entry in entries], indent=2, ensure_ascii=False
        )
    if name:
        fields = entries[0].model_dump(mode="json")
        return "\n".join(
            f"{key:<14} {value}" for key, value in fields.items() if value not in (None, "", {})
        )
    return table(
        ("name", "family", "parameters", "layers", "license", "hub id", "good for"),
        [_model_row(entry) for entry in entries],
    )


def _model_row(entry: CatalogueEntry) -> tuple[str, ...]:
    return (
        entry.name,
        entry.model_type,
        f"{entry.parameters:,}",
        str(entry.layers),
        entry.license or "unknown",
        entry.hub_id or "shipped",
        entry.good_for,
    )


def targets_table(name: str | None = None, as_json: bool = False) -> str:
    """Every target, or the TOML of one.

    Raises:
        InputError: unknown name, with the nearest ones.
    """
    loaded = [load_target(each) for each in ([name] if name else target_names())]
    if as_json:
        return json.dumps([target.model_dump(mode="json") for target in loaded], indent=2)
    if name:
        return target_text(name).rstrip()
    return table(
        ("name", "formats", "lengths", "device"),
        [
            (
                target.name,
                ", ".join(target.formats),
                " ".join(map(str, target.lengths)),
                target.description,
            )
            for target in loaded
        ],
    )


def recipes_table(name: str | None = None, as_json: bool = False) -> str:
    """Every recipe, or the TOML of one.

    Raises:
        InputError: unknown name, with the nearest ones.
    """
    if as_json:
        loaded = [load_recipe(each) for each in ([name] if name else recipe_names())]
        return json.dumps(
            [recipe.model_dump(mode="json", by_alias=True) for recipe in loaded], indent=2
        )
    if name:
        return recipe_text(name).rstrip()
    return table(
        ("name", "what it does"), [(each, load_recipe(each).description) for each in recipe_names()]
    )
