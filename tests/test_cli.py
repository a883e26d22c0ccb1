"""The command line as the contract has it: commands, options, streams, exit codes, messages."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from edgebert.pipeline.catalogue import load_catalogue
from edgebert.pipeline.cli import main
from edgebert.pipeline.recipe import load_recipe, recipe_names
from edgebert.targets import load_target, target_names

COMMANDS = tuple(main.commands)
# The outside of edgebert: what may not vanish or be renamed.
OPTIONS = {
    "distill": "--teacher --student --data --out --json",
    "build": "--model --target --data --recipe --out --max-drop --max-size --max-latency --format "
    "--set --dry-run --no-cache --no-validate --init --json",
    "validate": "--data --on --max-drop --json",
    "measure": "--on --threads --runs --import --apk --json",
    "predict": "--format --json",
    "inspect": "--layers --markdown --json",
    "models": "--json",
    "targets": "--json",
    "recipes": "--json",
    "doctor": "--fix --json",
}
HEAVY = ("torch", "numpy", "transformers", "onnxruntime", "ai_edge_litert", "onnx", "pyarrow")


def run(*words: str | Path, **arguments: Any) -> Result:
    """A command in this process, where it loads nothing heavy."""
    return CliRunner().invoke(main, [*map(str, words)], **arguments)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_screen_and_ends_with_an_example(command: str) -> None:
    done = run(*command.split(), "--help")
    lines = done.stdout.rstrip().splitlines()
    assert done.exit_code == 0
    assert sum(1 + (len(line) - 1) // 80 for line in lines if line) + lines.count("") <= 24
    assert max(map(len, lines[:-1])) <= 80
    if not command:
        assert not [line for line in lines[1:] if line.endswith("...")]  # no text is cut off
    words = shlex.split(lines[-1].split("Example: ")[1])
    assert words[:2] == ["edgebert", command or "build"]


@pytest.mark.parametrize("command", OPTIONS)
def test_options_of_the_contract(command: str) -> None:
    page = run(command, "--help").stdout
    for option in OPTIONS[command].split():
        assert re.search(rf"^  {option}\b", page, re.MULTILINE), option


@pytest.mark.parametrize("command", ["models", "targets", "recipes", "doctor"])
def test_examples_of_the_catalogues_run(command: str) -> None:
    example = run(command, "--help").stdout.rstrip().splitlines()[-1].split("Example: ")[1]
    done = run(*shlex.split(example)[1:])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip()


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom edgebert.pipeline.cli import main\n"
        "try:\n    main(['build', '--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_runner_of_a_bundle_imports_no_torch() -> None:
    code = (
        "import sys\nimport edgebert.pipeline.runtimes.run\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version() -> None:
    assert re.search(r"\d+\.\d+\.\d+", run("--version").stdout)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["biuld"], ["no command 'biuld'", "build"]),
        (["build"], ["Missing option '--model'", "edgebert build --help"]),
        (["build", "--model", "x", "--target", "y", "--formt", "onnx"], ["--formt", "--format"]),
        (["build", "--model", "x", "--target", "y", "--format", "coreml"], ["onnx", "tflite"]),
        (["build", "--model", "x", "--target", "y", "--max-drop", "low"], ["--max-drop", "low"]),
        (["models", "bert-base-uncasd"], ["unknown model", "bert-base-uncased"]),
        (["targets", "rasberry-pi-5"], ["unknown target", "raspberry-pi-5"]),
        (["recipes", "balance"], ["unknown recipe", "balanced"]),
        (["doctor", "--fix", "network"], ["network", "known: "]),
        (["inspect", "nowhere"], ["neither a bundle", "nowhere"]),
        (["validate", "nowhere"], ["not a bundle", "nowhere"]),
        (["measure", "nowhere"], ["not a bundle", "nowhere"]),
        (["predict", "nowhere", "text"], ["not a bundle", "nowhere"]),
    ],
)
def test_wrong_words(edgebert: Any, words: Sequence[str], parts: Sequence[str]) -> None:
    edgebert.expect_error(run(*words), 2, *parts)


def test_unknown_names_of_a_build(edgebert: Any) -> None:
    ours = ["--model", edgebert.model, "--data", edgebert.data, "--target", "android-arm64"]

    def build(*words: str | Path) -> Result:
        return run("build", *words)

    edgebert.expect_error(
        build("--model", "albert-bas-v2", "--target", "android-arm64"), 2, "albert-base-v2"
    )
    edgebert.expect_error(build(*ours, "--target", "raspbery-pi-4"), 2, "raspberry-pi-4")
    edgebert.expect_error(build(*ours, "--recipe", "blanced"), 2, "balanced")
    edgebert.expect_error(
        build(*ours, "--set", "quantize.scheme=dynamic_wi8"), 2, "nearest", "dynamic_wi8_afp32"
    )
    edgebert.expect_error(
        build(*ours, "--set", "quantize.shceme=auto"), 2, "quantize.shceme", "--set"
    )
    edgebert.expect_error(build(*ours, "--set", "scheme"), 2, "stage.key=value")
    edgebert.expect_error(build(*ours, "--max-drop", "1"), 2, "max_drop", "0.01")
    edgebert.expect_error(build(*ours, "--max-size", "0"), 2, "max_size_mb")
    edgebert.expect_error(
        build(*ours, "--target", "jetson-orin", "--format", "tflite"), 2, "tflite", "onnx"
    )
    edgebert.expect_error(
        build("--model", edgebert.model, "--target", "android-arm64"), 2, "--data"
    )
    edgebert.expect_error(build(*ours, "--data", "nowhere.jsonl"), 2, "nowhere.jsonl")
    edgebert.expect_error(build(*ours, "--model", edgebert.model / "config.json"), 2, "config.json")


def test_hub_model_without_a_network(
    edgebert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    for model in ("bert-base-uncased", "somebody/their-model"):
        done = run("build", "--model", model, "--target", "android-arm64", "--no-validate")
        edgebert.expect_error(done, 3, model, "hf download", "--model ./M")


def test_dry_run(edgebert: Any) -> None:
    ours = ["build", "--model", edgebert.model, "--data", edgebert.data, "--target", "jetson-orin"]
    done = run(*ours, "--dry-run", "--out", "there")
    assert done.exit_code == 0, done.stderr
    for part in ("tiny", "jetson-orin", "60 train, 40 dev, 60 test", "fp16", "0.005", "there"):
        assert part in done.stdout
    described = json.loads(run(*ours, "--dry-run", "--json").stdout)
    assert described["target"]["name"] == "jetson-orin"
    assert [*Path().iterdir()] == []  # neither bundle nor cache


def test_example_of_build_parses() -> None:
    example = run("build", "--help").stdout.rstrip().splitlines()[-1].split("Example: ")[1]
    done = run(*shlex.split(example)[1:], "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "5500 test" in done.stdout


def test_models_table() -> None:
    lines = run("models").stdout.splitlines()
    for name, entry in load_catalogue().items():
        row = next(line for line in lines if line.split()[0] == name)
        assert f"{entry.parameters:,}" in row
        assert str(entry.layers) in row.split()
        assert entry.good_for in row
        assert entry.hub_id in run("models", name).stdout
    listed = json.loads(run("models", "--json").stdout)
    assert {entry["name"] for entry in listed} >= set(load_catalogue())


@pytest.mark.parametrize("name", target_names())
def test_target_printed_is_a_target(name: str, tmp_path: Path) -> None:
    own = tmp_path / "my-device.toml"
    own.write_text(run("targets", name).stdout, encoding="utf-8")
    assert load_target(str(own)) == load_target(name)
    assert run("targets", own).stdout == run("targets", name).stdout
    assert name in run("targets").stdout
    assert json.loads(run("targets", name, "--json").stdout)[0]["name"] == name


@pytest.mark.parametrize("name", recipe_names())
def test_recipe_printed_is_a_recipe(name: str, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(run("recipes", name).stdout, encoding="utf-8")
    assert load_recipe(str(own)) == load_recipe(name)
    assert run("recipes", own).stdout == run("recipes", name).stdout
    assert name in run("recipes").stdout
    assert json.loads(run("recipes", name, "--json").stdout)[0]["name"] == name


def test_traceback_only_with_debug(edgebert: Any) -> None:
    words = ("build", "--model", "albrt", "--target", "android-arm64")
    assert "Traceback" not in edgebert(*words).stderr
    for done in (edgebert("--debug", *words), edgebert(*words, "--debug")):
        assert "Traceback" in done.stderr
        assert "unknown model 'albrt'" in done.stderr


def test_predict_takes_arguments_or_lines(edgebert: Any, built: Any) -> None:
    bundle, _ = built
    texts = ["book a flight to 東京", 'what is "this"?']
    given = edgebert("predict", bundle, *texts)
    piped = edgebert("predict", bundle, text="\n".join(texts) + "\n")
    assert given.returncode == 0, given.stderr
    assert given.stdout == piped.stdout
    assert [line.split("\t")[2] for line in given.stdout.splitlines()] == texts
    answers = json.loads(edgebert("predict", bundle, *texts, "--json").stdout)
    assert [answer["text"] for answer in answers] == texts
    assert [answer["label"] for answer in answers] == [
        line.split("\t")[0] for line in given.stdout.splitlines()
    ]
    labels = ("accept_reservations", "account_blocked", "alarm")
    for answer in answers:
        assert answer["label"] in labels
        assert answer["score"] == pytest.approx(max(answer["scores"].values()))
        assert sum(answer["scores"].values()) == pytest.approx(1, abs=1e-3)
    both = json.loads(edgebert("predict", bundle, texts[0], "--json", "--format", "tflite").stdout)
    assert [answer["text"] for answer in both] == texts[:1]
    edgebert.expect_error(edgebert("predict", bundle, "x", "--format", "coreml"), 2, "onnx")


def test_measure(edgebert: Any, built: Any) -> None:
    done = edgebert("measure", built[0], "--runs", "5", "--threads", "1", "--json")
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert [each["file"] for each in measured] == ["model.onnx", "model.tflite"]
    for each in measured:
        assert 0 < each["p50_ms"] <= each["p90_ms"] <= each["p99_ms"]
        assert each["load_ms"] > 0
        assert each["runs"] == 5
    text = edgebert("measure", built[0], "--runs", "5").stdout
    assert all(part in text for part in ("p50", "p90", "p99", "load", "MB above the runtime"))
    edgebert.expect_error(edgebert("measure", built[0], "--on", "fridge"), 2, "fridge", "local")
    edgebert.expect_error(edgebert("measure", built[0], "--runs", "0"), 2, "--runs")
