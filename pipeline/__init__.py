"""The public API: one call for each command of `edgebert`.

Everything heavy (torch, onnxruntime, LiteRT) is imported when a call needs it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgebert.pipeline.build_request import BuildRequest
    from edgebert.pipeline.build_result import BuildResult
    from edgebert.pipeline.catalogue import CatalogueEntry
    from edgebert.pipeline.distill_request import DistillRequest
    from edgebert.pipeline.distillation import Distilled
    from edgebert.pipeline.doctor import Check
    from edgebert.pipeline.inspection import Inspection
    from edgebert.pipeline.planning import Plan
    from edgebert.pipeline.progress import Progress
    from edgebert.pipeline.recipe import Recipe
    from edgebert.pipeline.stages.measure import Measurement
    from edgebert.pipeline.validation import Validation
    from edgebert.targets import Format, Target

__all__ = [
    "BuildRequest",
    "Bundle",
    "DistillRequest",
    "build",
    "distill",
    "examine",
    "inspect",
    "measure",
    "models",
    "plan",
    "predict",
    "recipes",
    "report_markdown",
    "targets",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Types of the API, imported when they are asked for."""
    if name == "Bundle":
        from edgebert.pipeline.bundle import Bundle

        return Bundle
    if name == "BuildRequest":
        from edgebert.pipeline.build_request import BuildRequest

        return BuildRequest
    if name == "DistillRequest":
        from edgebert.pipeline.distill_request import DistillRequest

        return DistillRequest
    raise AttributeError(name)


def plan(request: "BuildRequest") -> "Plan":
    """Resolve and check a build without running it.

    Raises:
        InputError: unknown name, malformed file, contradiction, or a model without data.
        MachineError: a hub model that is not at hand and cannot be fetched.
    """
    from edgebert.pipeline.planning import make_plan

    return make_plan(request)


def build(
    request: "BuildRequest", *, use_cache: bool = True, show: bool = False, debug: bool = False
) -> "BuildResult":
    """Build a bundle.

    Args:
        request: what is asked for.
        use_cache: False runs every stage anew.
        show: report progress on standard error.
        debug: let the libraries print.

    Raises:
        InputError: the input is wrong.
        MachineError: the machine lacks something.
    """
    from edgebert.pipeline.building import run_build
    from edgebert.pipeline.cache import Cache

    with _progress(show, debug) as progress:
        return run_build(plan(request), Cache(enabled=use_cache), progress)


def distill(request: "DistillRequest", *, show: bool = False, debug: bool = False) -> "Distilled":
    """Train a small student to answer as its teacher does; leaves a checkpoint to build from.

    Args:
        request: what is asked for.
        show: report progress on standard error.
        debug: let the libraries print.

    Raises:
        InputError: the input is wrong, or the loss stopped being a number.
        MachineError: the machine lacks something.
    """
    from edgebert.pipeline.cache import Cache
    from edgebert.pipeline.distillation import run_distillation

    with _progress(show, debug) as progress:
        return run_distillation(request, Cache(), progress)


def validate(
    bundle: Path,
    *,
    data: str | None = None,
    runner: str = "local",
    max_drop: float | None = None,
    formats: "tuple[Format, ...]" = (),
    rows: int | None = None,
    show: bool = False,
    debug: bool = False,
) -> "Validation":
    """Measure the drift of a bundle again, against the logits of its checkpoint.

    Args:
        bundle: the folder.
        data: a file, a folder or a shipped data set's name; None: what the bundle was built with.
        runner: where it is run.
        max_drop: largest drop of the task metric; None: the bundle's own limit.
        formats: the model files; empty: all.
        rows: most test rows; None: those of the build, of an emulated runner a sample.
        show: report progress on standard error.
        debug: let the libraries print.

    Raises:
        InputError: a file of the bundle does not match its checksum, or the data does not fit the
            model.
        MachineError: the checkpoint or the runtime is not at hand.
    """
    from edgebert.pipeline.validation import validate_bundle

    with _progress(show, debug) as progress:
        return validate_bundle(bundle, data, runner, max_drop, progress, formats, rows)


def measure(
    bundle: Path,
    *,
    runner: str = "local",
    threads: int | None = None,
    runs: int = 50,
    formats: "tuple[Format, ...]" = (),
    apk: Path | None = None,
    imported: Path | None = None,
    show: bool = False,
    debug: bool = False,
) -> "tuple[Measurement, ...]":
    """Latency, load time and peak memory of each model file of a bundle.

    What a phone measured is added to the bundle's report.

    Args:
        bundle: the folder.
        runner: where it is run.
        threads: of an inference; None: what the target says.
        runs: timed inferences; on a phone never fewer than 1,024.
        formats: the model files; empty: all, on a phone the first that the app can run.
        apk: the demo app to install on the phone; None: the one that was built here, if needed.
        imported: a result that was shared from the demo app, in place of a run.
        show: report progress on standard error.
        debug: let the libraries print.

    Raises:
        InputError: no bundle, an unknown runner, or a result that is not of this bundle on a phone.
        MachineError: the runtime, the device or the app is missing.
    """
    from edgebert.pipeline.measuring import run_measurement

    with _progress(show, debug) as progress:
        return run_measurement(bundle, runner, threads, runs, formats, apk, imported, progress)


def predict(
    bundle: Path, texts: Sequence[str], *, format: "Format | None" = None
) -> list[dict[str, Any]]:
    """Label texts as the device would: `text`, `label`, `score` and `scores` of each.

    Raises:
        InputError: no bundle, or no such format in it.
        MachineError: the runtime is missing.
    """
    from edgebert.pipeline.bundle import Bundle
    from edgebert.pipeline.runtimes.run import Classifier, RunError
    from edgebert.targets.errors import InputError

    opened = Bundle.open(bundle)
    try:
        classifier = Classifier(opened.path, format or opened.formats[0])
    except RunError as error:
        raise InputError(str(error), str(bundle)) from error
    return [classifier.predict(text) for text in texts]


def inspect(path: Path, *, layers: bool = False) -> "Inspection":
    """What is in a bundle or a checkpoint: sizes, parameters, operators, precision.

    Args:
        path: the folder.
        layers: also where the drift of a bundle arises, layer by layer.

    Raises:
        InputError: neither a bundle nor a checkpoint, or a bundle whose layers were not measured.
    """
    from edgebert.pipeline.inspection import inspect_path

    return inspect_path(path, layers)


def report_markdown(bundle: Path) -> str:
    """The report of a bundle as Markdown, for a comment or a job's summary page.

    Raises:
        InputError: no bundle, or one without a report.
    """
    from edgebert.pipeline.bundle import Bundle
    from edgebert.pipeline.stages.markdown import render_markdown
    from edgebert.pipeline.stages.report import read_report

    return render_markdown(read_report(Bundle.open(bundle).path))


def models() -> "tuple[CatalogueEntry, ...]":
    """The catalogue of models."""
    from edgebert.pipeline.catalogue import load_catalogue

    return tuple(load_catalogue().values())


def targets() -> "tuple[Target, ...]":
    """The shipped targets."""
    from edgebert.targets import load_target, target_names

    return tuple(load_target(name) for name in target_names())


def recipes() -> "tuple[Recipe, ...]":
    """The shipped recipes."""
    from edgebert.pipeline.recipe import load_recipe, recipe_names

    return tuple(load_recipe(name) for name in recipe_names())


def examine() -> "list[Check]":
    """What this machine has and lacks, with the cure (`edgebert doctor`)."""
    from edgebert.pipeline.doctor import examine

    return examine()


@contextmanager
def _progress(show: bool, debug: bool) -> "Iterator[Progress]":
    from edgebert.pipeline.progress import Progress, quiet_libraries

    with quiet_libraries(keep=debug) as stderr:
        yield Progress(stderr if show else None)
