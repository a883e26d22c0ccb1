"""Emulated machines: how they are set up, what is said without them, and that they compute."""

import subprocess
from pathlib import Path

import pytest

from edgebert.pipeline import doctor
from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.runners import Job, apt, find_runner
from edgebert.pipeline.runners.apt import PrivateApt, Source, system_sources
from edgebert.pipeline.runners.userland import install_wheels
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.device_rows import run_on
from edgebert.targets.errors import InputError, MachineError


def test_both_notations_of_apt_sources(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://old/ sid main\ndeb [arch=amd64 signed-by=/k.gpg] http://one/debian sid main\n"
        "deb-src http://one/debian sid main\n",
        encoding="utf-8",
    )
    (parts / "a.sources").write_text(
        "Types: deb deb-src\n# a comment\nURIs: http://two/debian\nSuites: trixie trixie-updates\n"
        "Components: main\nSigned-By: /two.gpg\n\nTypes: deb\nEnabled: no\n"
        "URIs: http://three\nSuites: x\n",
        encoding="utf-8",
    )
    assert system_sources(tmp_path) == (
        Source("http://one/debian", "sid", "/k.gpg"),
        Source("http://two/debian", "trixie", "/two.gpg"),
        Source("http://two/debian", "trixie-updates", "/two.gpg"),
    )


def test_a_system_without_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="apt-get is not on this machine") as caught:
        PrivateApt(tmp_path / "apt", "arm64")
    assert "Debian" in caught.value.cure
    assert not (tmp_path / "apt").exists()


@pytest.mark.skipif(not Path("/usr/bin/apt-get").exists(), reason="no apt")
def test_a_mirror_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    release = apt._release()
    source = Source("http://127.0.0.1:9/debian", release)
    monkeypatch.setattr(apt, "system_sources", lambda: (source,))
    with pytest.raises(MachineError, match="apt: ") as caught:
        PrivateApt(tmp_path / "apt", "arm64")
    assert "network" in caught.value.cure
    monkeypatch.setattr(apt, "system_sources", lambda: ())
    with pytest.raises(MachineError, match=f"no apt source of '{release}'"):
        PrivateApt(tmp_path / "apt", "arm64")


def test_without_the_userland(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(tmp_path))
    for name, check in (("qemu:cortex-a76", "qemu"), ("qemu-arm", "qemu-arm")):
        with pytest.raises(MachineError, match="is not set up") as caught:
            find_runner(name)
        assert f"`edgebert doctor --fix {check}`" in caught.value.cure
        assert "MB of disk" in caught.value.cure
        found = next(one for one in doctor.examine() if one.name == check)
        assert not found.passed
        assert not found.needed
        assert found.fix is not None
    for name in ("qemu:max", "qemu:", "qemu-x86:host", "qemu-arm:cortex-a76"):
        with pytest.raises(InputError, match=r"known: (cortex|Haswell)"):
            find_runner(name)
    assert list(tmp_path.iterdir()) == []


def test_neither_pip_nor_a_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MachineError, match="neither pip nor uv"):
        install_wheels(("numpy",), "aarch64", "3.11", tmp_path / "site")


@pytest.fixture(scope="module")
def userland(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A userland of this session's own."""
    if "ID=debian" not in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        pytest.skip("other systems' mirrors have no packages for Arm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEBERT_CACHE", str(tmp_path_factory.mktemp("machines")))
        check = doctor.fix("qemu")
    assert check.passed
    return Path(check.found).parents[1]


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("name", ["qemu:cortex-a76", "qemu:cortex-a53", "qemu-x86:Haswell"])
def test_a_bundle_on_another_processor(
    name: str,
    userland: Path,
    tiny_bundle_inputs: BundleInputs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EDGEBERT_CACHE", str(userland))
    bundle = write_bundle(tiny_bundle_inputs, tmp_path / "bundle")
    rows = [{"id": i, "text": "the film was good " * i} for i in range(3)]
    formats = bundle.formats if name == "qemu:cortex-a76" else bundle.formats[:1]
    for format in formats:
        there = run_on(find_runner(name), bundle, format, rows, tmp_path / "growing")
        here = run_on(find_runner("local"), bundle, format, rows, tmp_path / "growing")
        for a, b in zip(there.logits, here.logits, strict=True):
            assert abs(a - b).max() < 1e-4  # fp32: nothing but the order of the sums
        assert there.runtime == here.runtime
        assert ("aarch64" in there.machine) is not name.startswith("qemu-x86")
    (answer,) = find_runner(name).run(Job("check", bundle.path, "onnx"))
    assert answer["passed"] is True
    altered(bundle)
    with pytest.raises(InputError, match="is not the file"):
        run_on(find_runner(name), bundle, "onnx", rows, tmp_path / "growing")


def altered(bundle: Bundle) -> None:
    file = bundle.file("onnx")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.slow
@pytest.mark.network
def test_the_system_is_left_alone(userland: Path) -> None:
    foreign = subprocess.run(
        ["dpkg", "--print-foreign-architectures"], capture_output=True, text=True, check=False
    )
    assert "arm64" not in foreign.stdout
    (place,) = (userland / "machines").iterdir()
    assert not place.name.startswith(".")
    assert sorted(entry.name for entry in place.iterdir()) == ["bin", "root", "site"]
