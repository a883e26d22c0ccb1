"""The ssh runner against a real sshd on the loopback, with keys and known_hosts of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from edgebert.pipeline.bundle import Bundle
from edgebert.pipeline.runners import Job, LostConnection, find_runner
from edgebert.pipeline.runners.ssh import SshRunner, ssh_runner
from edgebert.pipeline.stages import device_rows
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.device_rows import run_on
from edgebert.pipeline.stages.measure import measure_bundle
from edgebert.targets.errors import InputError, MachineError

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(SSHD is None, reason="no sshd on this machine (openssh-server)")
ROWS = [{"id": i, "text": "the film was good " * (1 + i % 3)} for i in range(6)]

# A device of 0.3 s a row: run.py with a pause in its loop.
SLOW = """
import sys
from pathlib import Path
file, loop = sys.argv[1], "for row in read_lines(file):"
source = Path(file).read_text(encoding="utf-8")
source = source.replace(loop, f"{loop}\\n            time.sleep(0.3)")
sys.argv = sys.argv[1:]
exec(compile(source, file, "exec"), {"__name__": "__main__", "__file__": file})
"""


@dataclass
class Sshd:
    """A running server: its folder, port, process, and where a session's temporary files go."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"
    temporary: Path
    home: Path

    @property
    def runner(self) -> SshRunner:
        return ssh_runner(f"ssh:127.0.0.1:{self.port}")

    def sessions(self) -> list[int]:
        """Processes of the server that serve a connection."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in children.read_text().split()]

    def left_behind(self) -> list[str]:
        """What a run left on the device; the guard gets a moment to remove it."""
        for _ in range(100):
            names = [entry.name for entry in self.temporary.iterdir()]
            if not names:
                break
            time.sleep(0.05)
        return names


def keygen(file: Path) -> str:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)]
    subprocess.run(command, check=True)
    return file.with_name(f"{file.name}.pub").read_text(encoding="utf-8")


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    folder = tmp_path / "sshd"
    home, device, temporary = folder / "home", folder / "device", folder / "tmp"
    for path in (home / ".ssh", device, temporary):
        path.mkdir(parents=True)
    host_key = keygen(folder / "host_key")
    (folder / "authorized_keys").write_text(keygen(home / ".ssh" / "id_ed25519"), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    known = f"[127.0.0.1]:{port} {host_key}"
    (home / ".ssh" / "known_hosts").write_text(known, encoding="utf-8")
    search = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    config = f"""
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv HOME={device} TMPDIR={temporary} PATH={search}
"""
    (folder / "config").write_text(config, encoding="utf-8")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd started by root insists on it
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    command = [str(SSHD), "-D", "-e", "-f", str(folder / "config")]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield Sshd(folder, port, process, temporary, home)
        process.terminate()


@pytest.fixture
def bundle(tiny_bundle_inputs: BundleInputs, tmp_path: Path) -> Bundle:
    return write_bundle(tiny_bundle_inputs, tmp_path / "Bündel 束")


def test_rows_are_those_of_this_machine(sshd: Sshd, bundle: Bundle, tmp_path: Path) -> None:
    for format in bundle.formats:
        there = run_on(sshd.runner, bundle, format, ROWS, tmp_path / "growing")
        here = run_on(find_runner("local"), bundle, format, ROWS, tmp_path / "growing")
        assert [x.tolist() for x in there.logits] == [x.tolist() for x in here.logits]
        assert there.runtime == here.runtime
        assert there.machine.endswith(f"({sshd.runner.name})")
    assert sshd.left_behind() == []
    assert not (tmp_path / "growing").exists()


def test_check_and_measure(sshd: Sshd, bundle: Bundle) -> None:
    (answer,) = sshd.runner.run(Job("check", bundle.path, "onnx"))
    assert answer["passed"] is True
    found = measure_bundle(bundle, sshd.runner.name, runs=5)
    assert [one.file for one in found] == ["model.onnx", "model.tflite"]
    assert all(one.runner == sshd.runner.name and one.p50_ms > 0 for one in found)
    assert sshd.left_behind() == []


def test_an_unknown_host_key_is_refused(sshd: Sshd, bundle: Bundle) -> None:
    (sshd.home / ".ssh" / "known_hosts").write_text("", encoding="utf-8")
    with pytest.raises(MachineError, match="known_hosts") as caught:
        list(sshd.runner.run(Job("check", bundle.path)))
    assert f"ssh -p {sshd.port} 127.0.0.1" in caught.value.cure
    other = keygen(sshd.folder / "other")
    known = f"[127.0.0.1]:{sshd.port} {other}"
    (sshd.home / ".ssh" / "known_hosts").write_text(known, encoding="utf-8")
    with pytest.raises(MachineError, match="not the one in known_hosts"):
        list(sshd.runner.run(Job("check", bundle.path)))


def test_a_wrong_key_is_refused(sshd: Sshd, bundle: Bundle) -> None:
    (sshd.folder / "authorized_keys").write_text(keygen(sshd.folder / "else"), encoding="utf-8")
    with pytest.raises(MachineError, match="does not take this user's key") as caught:
        list(sshd.runner.run(Job("check", bundle.path)))
    assert "ssh-copy-id" in caught.value.cure


def test_an_unreachable_host(sshd: Sshd, bundle: Bundle) -> None:
    sshd.process.terminate()
    sshd.process.wait()
    with pytest.raises(MachineError, match="not reachable") as caught:
        list(sshd.runner.run(Job("check", bundle.path)))
    assert caught.value.exit_code == 3
    with pytest.raises(MachineError, match="not reachable"):
        list(ssh_runner("ssh:pi@no-such-host.invalid").run(Job("check", bundle.path)))


def test_names() -> None:
    assert ssh_runner("ssh:pi@[::1]:2222").host == "::1"
    one = ssh_runner("ssh:raspberry")
    assert (one.user, one.host, one.port) == (None, "raspberry", None)
    for name in ("ssh:", "ssh:pi@", "ssh:pi@host:port"):
        with pytest.raises(InputError, match="cannot read"):
            find_runner(name)


def own_python(sshd: Sshd, command: str) -> None:
    """Put a program where the runner looks for Python first."""
    python = sshd.folder / "device" / ".edgebert" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\n{command} "$@"\n', encoding="utf-8")
    python.chmod(0o755)


def slow_device(sshd: Sshd) -> None:
    file = sshd.folder / "slow.py"
    file.write_text(SLOW, encoding="utf-8")
    own_python(sshd, f"exec {sys.executable} {file}")


def test_rows_go_on_after_the_connection_was_lost(
    sshd: Sshd, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_device(sshd)
    asked: list[int] = []
    ask = device_rows._ask

    def watched(runner, bundle, format, rows):  # type: ignore[no-untyped-def]
        asked.append(len(rows))
        for answer in ask(runner, bundle, format, rows):
            yield answer
            if len(asked) == 1 and answer.get("id") == 2:
                for session in sshd.sessions():
                    os.kill(session, signal.SIGKILL)

    monkeypatch.setattr(device_rows, "_ask", watched)
    there = run_on(sshd.runner, bundle, "onnx", ROWS, tmp_path / "growing")
    here = run_on(find_runner("local"), bundle, "onnx", ROWS, tmp_path / "here")
    assert asked[:2] == [6, 3]  # the connection broke after three rows, and they were kept
    assert [x.tolist() for x in there.logits] == [x.tolist() for x in here.logits]
    assert sshd.left_behind() == []


def test_a_device_that_is_unplugged_keeps_its_rows(
    sshd: Sshd, bundle: Bundle, tmp_path: Path
) -> None:
    slow_device(sshd)
    growing, seen = tmp_path / "growing", 0

    class Unplugged(SshRunner):
        def run(self, job: Job):  # type: ignore[no-untyped-def]
            nonlocal seen
            for answer in super().run(job):
                yield answer
                seen += 1
                if seen == 3:
                    sessions = sshd.sessions()
                    sshd.process.kill()
                    sshd.process.wait()
                    for session in sessions:
                        os.kill(session, signal.SIGKILL)

    one = sshd.runner
    runner = Unplugged(one.name, one.user, one.host, one.port)
    with pytest.raises(MachineError, match="not reachable") as caught:
        run_on(runner, bundle, "onnx", ROWS, growing)
    assert not isinstance(caught.value, LostConnection)
    lines = [json.loads(line) for line in growing.read_text(encoding="utf-8").splitlines()]
    assert "runtime" in lines[0]
    assert f"{len(lines) - 1} of 6 rows are kept" in caught.value.cure
    assert [line["id"] for line in lines[1:]] == list(range(len(lines) - 1))
    assert len(lines) >= 3
    assert sshd.left_behind() == []
    whole = run_on(find_runner("local"), bundle, "onnx", ROWS, tmp_path / "here")
    assert len(whole.logits) == 6


def test_a_device_without_space(sshd: Sshd, bundle: Bundle) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(sshd.temporary)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    try:
        with pytest.raises(MachineError, match="No space left") as caught:
            list(sshd.runner.run(Job("check", bundle.path)))
        assert "free" in caught.value.cure
        assert sshd.left_behind() == []
    finally:
        subprocess.run(["umount", str(sshd.temporary)], check=True)


def test_a_device_that_falls_silent(sshd: Sshd, bundle: Bundle, tmp_path: Path) -> None:
    own_python(sshd, "exec sleep 60 #")
    with pytest.raises(MachineError, match=r"no answer for 0\.5 s"):
        list(replace(sshd.runner, silence_s=0.5).run(Job("check", bundle.path)))
    assert sshd.left_behind() == []


def test_a_device_without_the_runtime(sshd: Sshd, bundle: Bundle) -> None:
    lacking = sshd.folder / "lacking"
    lacking.mkdir()
    (lacking / "onnxruntime.py").write_text("raise ModuleNotFoundError('onnxruntime')")
    own_python(sshd, f"PYTHONPATH={lacking} exec {sys.executable}")
    with pytest.raises(MachineError, match="onnxruntime") as caught:
        list(sshd.runner.run(Job("check", bundle.path, "onnx")))
    assert "pip install" in caught.value.cure
    assert sshd.left_behind() == []
