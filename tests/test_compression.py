"""The training stages of a recipe inside a build: what they leave, what they refuse."""

from pathlib import Path
from typing import Any

import pytest

from edgebert import pipeline
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.recipe import load_recipe
from edgebert.pipeline.stages.load import count_parameters
from edgebert.targets.errors import InputError

RECIPE = """
name = "shrunk"

[distill]
student = "distilbert-like"
epochs = 1
batch_size = 16
unlabeled = "UNLABELED"

[prune]
ffn = 0.5
vocabulary = true

[recover]
epochs = 1
batch_size = 16

[quantize]
scheme = "dynamic_wi8c_afp32"

[gates]
max_drop = 0.9
"""


def request(edgebert: Any, tmp_path: Path, **changes: Any) -> pipeline.BuildRequest:
    fields: dict[str, Any] = {
        "model": str(edgebert.model),
        "target": "android-arm64",
        "data": str(edgebert.data),
        "out": tmp_path / "bundle",
        "formats": ("onnx",),
    }
    return pipeline.BuildRequest(**(fields | changes))


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path / "cache"))
    texts = tmp_path / "texts.txt"
    texts.write_text("what is the weather\nplay music\nplay music\n", encoding="utf-8")
    file = tmp_path / "shrunk.toml"
    file.write_text(RECIPE.replace("UNLABELED", str(texts)), encoding="utf-8")
    return file


def test_a_recipe_distills_prunes_and_trains_again(
    edgebert: Any, tmp_path: Path, recipe: Path
) -> None:
    result = pipeline.build(request(edgebert, tmp_path, recipe=str(recipe)))
    names = [stage.name for stage in result.bundle.manifest.stages]
    assert names[:5] == [
        "load",
        "student distilbert-like",
        "distill into distilbert-like",
        "prune",
        "recover",
    ]
    plain = count_parameters(Checkpoint(edgebert.model, "tiny"))
    assert result.bundle.manifest.parameters < plain
    assert any("1 unlabeled texts were left out" in note for note in result.report.notes)
    # The drift is that against the model as it was loaded, not against its student.
    assert result.report.drift["onnx"].agreement is not None
    assert result.report.drift["onnx"].agreement < 1
    assert list((tmp_path / "cache" / "training").glob("*")) == []


@pytest.mark.parametrize(
    ("lines", "where", "message"),
    [
        ("[distill]\nepochs = 1\n", "distill", "required"),
        ('[distill]\nstudent = "tinybert-4"\nepoch = 1\n', ":4", "distill.epoch"),
        ("[recover]\nlearning_rate = -1\n", ":3", "recover.learning_rate"),
        ('[recover]\nstudent = "tinybert-4"\n', ":3", "recover.student"),
        ('[distill]\nstudent = "x"\nlayer_map = "first"\n', ":4", "distill.layer_map"),
    ],
)
def test_settings_are_checked_with_line_and_field(
    tmp_path: Path, lines: str, where: str, message: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'name = "mine"\n{lines}', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_recipe(str(file))
    assert message in str(caught.value)
    assert where in str(caught.value)


def test_what_could_not_be_trained_is_refused_before_anything_runs(
    edgebert: Any, tmp_path: Path, recipe: Path
) -> None:
    with pytest.raises(InputError, match="no train rows"):
        pipeline.plan(request(edgebert, tmp_path, recipe=str(recipe), data=None, validate=False))
    alone = tmp_path / "alone.toml"
    alone.write_text('name = "alone"\n[recover]\nepochs = 1\n', encoding="utf-8")
    with pytest.raises(InputError, match="recover trains what was pruned or distilled"):
        pipeline.plan(request(edgebert, tmp_path, recipe=str(alone)))


def test_a_plan_says_what_is_trained(edgebert: Any, tmp_path: Path, recipe: Path) -> None:
    text = pipeline.plan(request(edgebert, tmp_path, recipe=str(recipe))).text()
    assert "distill  into distilbert-like" in text
    assert "recover  1 epochs" in text


def test_candidates_of_a_recipe_are_those_that_the_format_has(
    edgebert: Any, tmp_path: Path
) -> None:
    plan = pipeline.plan(
        request(
            edgebert,
            tmp_path,
            formats=(),
            overrides=('quantize.candidates=["weight_only_wi4b32", "dynamic_wi8c_hr_afp32"]',),
        )
    )
    assert plan.candidates("onnx") == ("weight_only_wi4b32",)
    assert plan.candidates("tflite") == ("dynamic_wi8c_hr_afp32",)
    with pytest.raises(InputError, match="no scheme 'dynamic_wi8c_hr_afp32' for onnx"):
        pipeline.plan(
            request(
                edgebert, tmp_path, overrides=('quantize.candidates=["dynamic_wi8c_hr_afp32"]',)
            )
        )
