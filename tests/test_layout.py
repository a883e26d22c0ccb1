"""The house: the package list, what is shipped and how large it is, and what no file may say."""

import importlib
import pkgutil
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from edgebert import pipeline

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = SETTINGS["tool"]["setuptools"]
MB = 1e6
TEXT = (".py", ".toml", ".md", ".yml", ".yaml", ".json", ".j2", ".txt", ".cfg", ".sh", "")


def tracked() -> list[Path]:
    """Files that git has or would take."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    files = (ROOT / name for name in done.stdout.decode().split("\0") if name)
    return [file for file in files if file.is_file() and not file.is_symlink()]


def test_packages_are_those_on_the_disk() -> None:
    found = []
    for name, folder in SETUPTOOLS["package-dir"].items():
        for init in sorted((ROOT / folder).rglob("__init__.py")):
            parts = init.parent.relative_to(ROOT / folder).parts
            found.append(".".join([name, *parts]))
    assert sorted(SETUPTOOLS["packages"]) == sorted(found)


def test_every_python_file_is_in_a_package() -> None:
    for folder in SETUPTOOLS["package-dir"].values():
        for file in (ROOT / folder).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), file


def test_names_map_to_the_folders() -> None:
    import edgebert.calibration
    import edgebert.pipeline
    import edgebert.targets

    for package in (edgebert.pipeline, edgebert.targets, edgebert.calibration):
        folder = Path(str(package.__file__)).parent
        assert folder == ROOT / SETUPTOOLS["package-dir"][package.__name__]
        assert (folder / "py.typed").exists()
        assert f'"{package.__name__}"' in str(SETUPTOOLS["package-data"]).replace("'", '"')


def test_data_files_are_in_the_wheel() -> None:
    for package, patterns in SETUPTOOLS["package-data"].items():
        folder = ROOT / SETUPTOOLS["package-dir"][package]
        shipped = {file for pattern in patterns for file in folder.glob(pattern)}
        for file in tracked():
            if folder in file.parents and file.suffix != ".py":
                assert file in shipped, file


def test_sizes() -> None:
    sizes = {file: file.stat().st_size for file in tracked()}
    assert sum(sizes.values()) < 40 * MB
    for file, size in sizes.items():
        checkpoint = file.suffix == ".safetensors" and "models" in file.parts
        assert size <= (12 if checkpoint else 4) * MB, file


def test_no_file_speaks_of_this_machine() -> None:
    """No paths of a developer's machine and no private package index outside the lock file."""
    home = "|".join("/" + word + "/" for word in ("work", "root", "home", "Users"))
    needles = re.compile(rf"(?<![\w.~/-])({home})\w|://[\w.-]*(?:index|mirror|proxy|simple)[\w.-]*")
    found = []
    for file in tracked():
        if file.suffix not in TEXT or file.name == "uv.lock" or "data" in file.parts:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if needles.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []


def test_python_files_are_short() -> None:
    long = {
        str(file.relative_to(ROOT)): count
        for file in tracked()
        if file.suffix == ".py" and file.relative_to(ROOT).parts[0] != "tests"
        if (count := len(file.read_text(encoding="utf-8").splitlines())) > 300
        and file.name != "run.py"  # copied into bundles, where it has to be one file
    }
    assert long == {}


def test_the_public_api_is_callable() -> None:
    # A module of the same name would take the function's place once it is imported.
    for module in pkgutil.iter_modules(pipeline.__path__):
        importlib.import_module(f"edgebert.pipeline.{module.name}")
    for name in pipeline.__all__:
        assert callable(getattr(pipeline, name)), name
    names = {entry.name for entry in pipeline.models()}
    assert {"albert", "bert-base-uncased", "xlm-roberta-base"} <= names
    assert "android-arm64" in {target.name for target in pipeline.targets()}
    assert "balanced" in {recipe.name for recipe in pipeline.recipes()}
    assert {"python", "cache"} <= {check.name for check in pipeline.examine()}
