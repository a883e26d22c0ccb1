"""Recipes: shipped ones, a user's own, overrides, and messages with line and field."""

from pathlib import Path

import pytest

from edgebert.pipeline.recipe import AUTO, load_recipe, recipe_names
from edgebert.pipeline.schemes import SCHEMES
from edgebert.targets.errors import InputError


@pytest.mark.parametrize("name", recipe_names())
def test_shipped(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.description
    chosen = {recipe.quantize.scheme, *recipe.quantize.candidates} - {AUTO}
    assert chosen <= {scheme.name for scheme in SCHEMES}


def test_own_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\n[validate]\ntest_rows = 7\n', encoding="utf-8")
    recipe = load_recipe(str(file))
    assert recipe.validate_.test_rows == 7
    assert recipe.validate_.dev_rows == load_recipe("balanced").validate_.dev_rows
    assert recipe.quantize.scheme == AUTO


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ('name = "x"\n\n[validate]\ntest_row = 7\n', 4, "validate.test_row"),
        ('name = "x"\n[validate]\n# rows\ntest_rows = "seven"\n', 4, "validate.test_rows"),
        ('name = "x"\n[calibration]\nrows = 0\n', 3, "calibration.rows"),
        ('name = "x"\n[shrink]\nheads = 2\n', 2, "shrink"),
        ('name = "x"\n[gates]\nmax_drop = 2\n', 3, "gates.max_drop"),
        ('name = "x"\nseed = 2\n', 2, "seed"),
        ('name = "x"\n[validate\n', 2, "not valid TOML"),
    ],
)
def test_wrong_field_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, field: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_recipe(str(file))
    message = str(caught.value)
    assert field in message
    assert f"{file}:{line}" in message or f"line {line}" in message


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml"):
        load_recipe(str(tmp_path / "none.toml"))
    latin = tmp_path / "latin.toml"
    latin.write_bytes("name = 'größe'".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.toml"):
        load_recipe(str(latin))


def test_overrides() -> None:
    recipe = load_recipe(
        "balanced",
        [
            "quantize.scheme=fp32",
            'quantize.candidates=["fp16", "fp32"]',
            "validate.test_rows=20",
            "gates.max_drop=0.02",
        ],
    )
    assert recipe.quantize.scheme == "fp32"
    assert recipe.quantize.candidates == ("fp16", "fp32")
    assert recipe.validate_.test_rows == 20
    assert recipe.gates.max_drop == 0.02


@pytest.mark.parametrize(
    "override",
    ["validate.test_rows=many", "validate.rows=3", "nothing", "a=b", "name.x=1", "quantize.=x"],
)
def test_wrong_override_is_named(override: str) -> None:
    with pytest.raises(InputError) as caught:
        load_recipe("balanced", [override])
    assert f"--set {override}" in str(caught.value)
