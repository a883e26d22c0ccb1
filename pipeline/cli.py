"""The command line: parse, call, print. The rest is the public API, `edgebert.pipeline`."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from edgebert.pipeline.cli_group import Group

Command = TypeVar("Command", bound=Callable[..., Any])


def _json_option(command: Command) -> Command:
    return click.option(
        "--json", "as_json", is_flag=True, help="One JSON document on standard output."
    )(command)


def _formats_option(command: Command) -> Command:
    return click.option(
        "--format",
        "formats",
        multiple=True,
        type=click.Choice(["onnx", "tflite"]),
        help="Only this format.",
    )(command)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


@click.group(
    "edgebert",
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: edgebert build --model albert --target android-arm64",
)
@click.version_option(package_name="edgebert")
@click.option("--debug", is_flag=True, help="Show what libraries print, and tracebacks.")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """Make a BERT-family model small and fast, and prove that it is unchanged."""
    context.obj = debug


@main.command(epilog="Example: edgebert build --model albert --target android-arm64")
@click.option("--model", required=True, help="Catalogue name, local folder or hub id.")
@click.option("--target", required=True, help="Target name, or your own TOML file.")
@click.option("--data", help="File or folder of rows, or a shipped set's name.")
@click.option("--recipe", default="balanced", help="Recipe name, or your own TOML file. [balanced]")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Bundle folder. [artifacts/<model>-<target>]"
)
@click.option("--max-drop", type=float, help="Largest drop of the task metric, a fraction (0.01).")
@click.option("--max-size", "max_size_mb", type=float, help="Largest model file in MB.")
@click.option(
    "--max-latency",
    "max_latency_ms",
    type=float,
    help="Longest median latency in ms, measured here.",
)
@_formats_option
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="STAGE.KEY=VALUE",
    help="Override a recipe setting.",
)
@click.option("--no-texts", is_flag=True, hidden=True)  # --set report.texts=false; help is full
@click.option(
    "--validate-on", multiple=True, metavar="RUNNER", help="Validate there too, qemu:cortex-a76."
)
@click.option("--no-validate", is_flag=True, help="Build without data and without proof.")
@click.option("--allow-pickle", is_flag=True, hidden=True)  # the refusal of a pickle names it
@click.option(
    "--init",
    type=click.Choice(["random"]),
    help="Made-up weights at real size, for sizes and speeds.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and stop.")
@click.option("--no-cache", is_flag=True, help="Run every stage anew.")
@_json_option
@click.pass_obj
def build(
    debug: bool,
    /,
    init: str | None,
    no_validate: bool,
    no_texts: bool,
    dry_run: bool,
    no_cache: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Build the bundle of a model for a target."""
    from edgebert import pipeline

    asked |= {"validate": not no_validate, "texts": not no_texts}
    request = pipeline.BuildRequest(**asked, init_random=init == "random")
    if dry_run:
        plan = pipeline.plan(request)
        _print_json(plan.describe()) if as_json else click.echo(plan.text())
        return
    result = pipeline.build(request, use_cache=not no_cache, show=True, debug=debug)
    if as_json:
        _print_json(result.describe())
    else:
        click.echo(result.text())
    sys.exit(0 if result.passed else 1)


@main.command(
    epilog="\b\nExample: edgebert distill --teacher albert --student distilbert-like "
    "--data clinc150 --out small"
)
@click.option("--teacher", required=True, help="Catalogue name, local folder or hub id.")
@click.option(
    "--student",
    required=True,
    help="albert-like, distilbert-like, tinybert-4, a configuration (.json), or a model.",
)
@click.option("--data", required=True, help="File or folder of rows, or a shipped set's name.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Checkpoint folder.")
@click.option("--unlabeled", help="More texts, for the teacher to label.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting: alpha, temperature, hidden_weight, learning_rate, ...",
)
@click.option("--epochs", type=float, help="Passes over the texts. [5]")
@click.option("--seed", type=int, help="Of every random choice. [0]")
@click.option("--finetune-teacher", is_flag=True, help="Train the teacher on --data first.")
@click.option(
    "--allow-pickle", is_flag=True, help="Read pytorch_model.bin where there is nothing else."
)
@_json_option
@click.pass_obj
def distill(
    debug: bool,
    /,
    epochs: float | None,
    seed: int | None,
    overrides: tuple[str, ...],
    as_json: bool,
    **asked: Any,
) -> None:
    """Train a small student to answer as its teacher does."""
    from edgebert import pipeline

    given = {"epochs": epochs, "seed": seed}
    overrides += tuple(f"{key}={value}" for key, value in given.items() if value is not None)
    request = pipeline.DistillRequest(**asked, overrides=overrides)
    result = pipeline.distill(request, show=True, debug=debug)
    if os.environ.get("RANK", "0") != "0":  # of `accelerate launch`: that of rank 0 prints
        return
    _print_json(result.describe()) if as_json else click.echo(result.text())


@main.command(epilog="Example: edgebert validate artifacts/albert-android-arm64")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--data", help="Other labeled rows than those it was built with.")
@click.option("--on", "runner", default="local", show_default=True, help="Where to run it.")
@click.option("--max-drop", type=float, help="Largest drop of the task metric. [the bundle's]")
@click.option("--rows", type=click.IntRange(min=1), help="Most test rows. [all; emulated 100]")
@_formats_option
@_json_option
@click.pass_obj
def validate(debug: bool, /, bundle: Path, as_json: bool, **asked: Any) -> None:
    """Measure the drift of a bundle again."""
    from edgebert import pipeline

    result = pipeline.validate(bundle, **asked, show=True, debug=debug)
    _print_json(result.describe()) if as_json else click.echo(result.text())
    sys.exit(0 if result.passed else 1)


@main.command(epilog="Example: edgebert measure artifacts/albert-android-arm64")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--on", "runner", default="local", show_default=True, help="Where to run it.")
@click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of one inference. [the target's]"
)
@click.option(
    "--runs", type=click.IntRange(min=1), default=50, show_default=True, help="Timed runs."
)
@click.option("--apk", type=click.Path(path_type=Path), help="The app to install on a phone.")
@click.option(
    "--import", "imported", type=click.Path(path_type=Path), help="A result shared from the app."
)
@_formats_option
@_json_option
@click.pass_obj
def measure(debug: bool, /, bundle: Path, as_json: bool, **asked: Any) -> None:
    """Measure latency, load time and peak memory."""
    from edgebert import pipeline

    results = pipeline.measure(bundle, **asked, show=True, debug=debug)
    if as_json:
        _print_json([result.model_dump(mode="json") for result in results])
        return
    for result in results:
        click.echo(result.text())


@main.command(epilog='Example: edgebert predict artifacts/albert-android-arm64 "play some jazz"')
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1)
@click.option(
    "--format", type=click.Choice(["onnx", "tflite"]), help="Which model file. [the first]"
)
@_json_option
def predict(bundle: Path, texts: tuple[str, ...], format: Any, as_json: bool) -> None:
    """Label texts, or one text a line from standard input."""
    from edgebert import pipeline
    from edgebert.pipeline.summary import answer_text

    lines = texts or tuple(line.rstrip("\n") for line in sys.stdin)
    answers = pipeline.predict(bundle, lines, format=format)
    if as_json:
        _print_json(answers)
        return
    for answer in answers:
        click.echo(answer_text(answer))


@main.command(epilog="Example: edgebert inspect artifacts/albert-android-arm64")
@click.argument("path", type=click.Path(path_type=Path), metavar="BUNDLE|CHECKPOINT")
@click.option("--layers", is_flag=True, help="Where the drift arises, layer by layer.")
@click.option("--markdown", is_flag=True, help="The report, for a comment or a summary page.")
@_json_option
def inspect(path: Path, layers: bool, markdown: bool, as_json: bool) -> None:
    """Show what is in a bundle or a checkpoint."""
    from edgebert import pipeline

    if markdown:
        click.echo(pipeline.report_markdown(path), nl=False)
        return
    found = pipeline.inspect(path, layers=layers)
    _print_json(found.model_dump(mode="json")) if as_json else click.echo(found.text())


@main.command(epilog="Example: edgebert models distilbert-base-uncased")
@click.argument("name", required=False)
@_json_option
def models(name: str | None, as_json: bool) -> None:
    """List the models, or one of them."""
    from edgebert.pipeline.catalogues import models_table

    click.echo(models_table(name, as_json))


@main.command(epilog="Example: edgebert targets raspberry-pi-5")
@click.argument("name", required=False)
@_json_option
def targets(name: str | None, as_json: bool) -> None:
    """List the targets, or print one as TOML to start your own from."""
    from edgebert.pipeline.catalogues import targets_table

    click.echo(targets_table(name, as_json))


@main.command(epilog="Example: edgebert recipes balanced")
@click.argument("name", required=False)
@_json_option
def recipes(name: str | None, as_json: bool) -> None:
    """List the recipes, or print one as TOML to start your own from."""
    from edgebert.pipeline.catalogues import recipes_table

    click.echo(recipes_table(name, as_json))


@main.command(epilog="Example: edgebert doctor")
@click.option("--fix", metavar="NAME", help="Repair what the check NAME found.")
@_json_option
def doctor(fix: str | None, as_json: bool) -> None:
    """Show what this machine has and lacks, with the cure."""
    from edgebert.pipeline import doctor as machine

    checks = [machine.fix(fix)] if fix else machine.examine()
    if as_json:
        _print_json([check.describe() for check in checks])
    else:
        for check in checks:
            click.echo(check.text())
    sys.exit(0 if all(check.passed or not check.needed for check in checks) else 3)
