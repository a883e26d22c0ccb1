"""Targets: shipped ones, a user's own, and messages with line and field."""

import platform
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from edgebert import pipeline
from edgebert.pipeline.build_request import BuildRequest
from edgebert.pipeline.schemes import find_scheme
from edgebert.targets import load_target, target_names, target_text
from edgebert.targets.errors import InputError


def test_the_device_classes() -> None:
    assert set(target_names()) >= {
        "android-arm64",
        "raspberry-pi-5",
        "raspberry-pi-4",
        "raspberry-pi-armv7",
        "jetson-orin",
        "desktop-x86_64",
    }


@pytest.mark.parametrize("name", target_names())
def test_shipped(name: str) -> None:
    target = load_target(name)
    assert target.name == name
    assert target.formats
    assert list(target.lengths) == sorted(set(target.lengths))
    for format in target.formats:
        settings = target.onnx if format == "onnx" else target.tflite
        assert settings is not None
        assert Requirement(settings.runtime).specifier
        for candidate in settings.candidates:
            assert find_scheme(candidate, format).name == candidate


def test_no_dynamic_int8_where_it_is_silently_wrong() -> None:
    tflite = load_target("raspberry-pi-armv7").tflite
    assert tflite is not None
    assert tflite.module == "tflite_runtime"
    assert not [name for name in tflite.candidates if name.startswith("dynamic_wi8c")]


def own(tmp_path: Path, text: str) -> str:
    file = tmp_path / "my-device.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_own_file(tmp_path: Path) -> None:
    text = target_text("raspberry-pi-5").replace("raspberry-pi-5", "my-device")
    target = load_target(own(tmp_path, text.replace("threads = 4", "threads = 2")))
    assert target.name == "my-device"
    assert target.threads == 2


HEAD = 'name = "x"\ndescription = "mine"\narch = "aarch64"\n'
TFLITE = '[tflite]\nruntime = "ai-edge-litert>=2.1"\ncandidates = ["fp32"]\n'


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        (HEAD + "thread = 2\n" + TFLITE, 4, "thread"),
        (HEAD + "threads = 0\n" + TFLITE, 4, "threads"),
        (HEAD + "lengths = [32, -1]\n" + TFLITE, 4, "lengths"),
        (HEAD.replace("aarch64", "vax") + TFLITE, 3, "arch"),
        (HEAD + TFLITE + "module = 'tensorflow'\n", 7, "tflite.module"),
        (HEAD + TFLITE + "[tflite.max_op_versions]\nGATHER_ND = 'four'\n", 8, "GATHER_ND"),
        (HEAD + "[onnx]\nruntime = 'onnxruntime'\n", 4, "onnx.max_opset"),
        (HEAD + TFLITE + "[tflite\n", 7, "not valid TOML"),
    ],
)
def test_wrong_field_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, field: str
) -> None:
    file = own(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_target(file)
    message = str(caught.value)
    assert field in message
    assert f"{file}:{line}" in message or f"line {line}" in message


@pytest.mark.parametrize("text", ["", HEAD, HEAD.replace("mine", "") + "lengths = []\n"])
def test_incomplete(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"my-device\.toml"):
        load_target(own(tmp_path, text))


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml"):
        load_target(str(tmp_path / "none.toml"))


def test_a_plan_says_what_it_cannot_measure(tmp_path: Path) -> None:
    for target, expected in (("raspberry-pi-armv7", "tflite-runtime==2.14.0"), ("jetson-orin", "")):
        request = BuildRequest(model="albert", target=target, out=tmp_path / "bundle")
        notes = " ".join(pipeline.plan(request).notes)
        assert ("the device runs" in notes) is bool(expected)
        assert expected in notes
        arch = load_target(target).arch
        assert (f"the processor of the target is {arch}" in notes) is (platform.machine() != arch)
