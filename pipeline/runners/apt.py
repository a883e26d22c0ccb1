"""Debian packages for another processor, unpacked into a folder of our own.

apt downloads and `dpkg-deb` unpacks; the system's own package database is never touched and nothing
is installed. Mirror and keyring are those of the system's own apt sources.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgebert.targets.errors import MachineError

SOURCES = Path("/etc/apt")
CURE = "use a Debian 12 or newer machine or container"
_OPTION = re.compile(r"^deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s")


@dataclass(frozen=True)
class Source:
    """One line of the system's apt sources: where from, which release, which keyring if any."""

    uri: str
    suite: str
    keyring: str = ""


def system_sources(folder: Path = SOURCES) -> tuple[Source, ...]:
    """What the system's own apt reads, in either of its two notations (sources.list(5))."""
    parts = folder / "sources.list.d"
    found: list[Source] = []
    for file in (folder / "sources.list", *sorted(parts.glob("*.list"))):
        if file.is_file():
            found += _one_line(file.read_text(encoding="utf-8"))
    for file in sorted(parts.glob("*.sources")):
        found += _stanzas(file.read_text(encoding="utf-8"))
    return tuple(found)


def _one_line(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        if match := _OPTION.match(line.strip() + " "):
            options = dict(o.split("=", 1) for o in (match["options"] or "").split() if "=" in o)
            yield Source(match["uri"], match["suite"], options.get("signed-by", ""))


def _stanzas(text: str) -> Iterator[Source]:
    for stanza in re.split(r"\n\s*\n", text):
        lines = (line.partition(":") for line in stanza.splitlines() if line[:1] not in ("#", " "))
        fields = {name.strip().lower(): value.strip() for name, _, value in lines}
        if "deb" not in fields.get("types", "").split() or fields.get("enabled") == "no":
            continue
        keyring = fields.get("signed-by", "")  # empty where the key itself stands there
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(uri, suite, keyring)


class PrivateApt:
    """An apt of its own below a folder, for one processor.

    Args:
        folder: where its lists and packages go.
        architecture: as Debian calls it: arm64, armhf.

    Raises:
        MachineError: no apt here, or sources that we cannot use.
    """

    def __init__(self, folder: Path, architecture: str) -> None:
        for program in ("apt-get", "dpkg-deb", "dpkg"):
            if shutil.which(program) is None:
                raise MachineError(f"{program} is not on this machine", "", CURE)
        self.folder = folder
        self.host = _output(["dpkg", "--print-architecture"])
        release = _release()
        main = next((s for s in system_sources() if s.suite == release), None)
        if main is None:
            raise MachineError(f"no apt source of '{release}'", str(SOURCES), CURE)
        for name in ("state/lists/partial", "cache/archives/partial", "etc"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        signed = f" signed-by={main.keyring}" if main.keyring.startswith("/") else ""
        lines = [f"deb [arch={architecture},{self.host}{signed}] {main.uri} {release} main"]
        if release == "bookworm":  # its own qemu 7.2 does not make a /proc/cpuinfo of the guest
            lines.append(f"deb [arch={self.host}{signed}] {main.uri} {release}-backports main")
        (folder / "etc/sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.backports = ("-t", f"{release}-backports") if release == "bookworm" else ()
        config = f"""
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/etc/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
APT::Architecture "{architecture}";
APT::Architectures {{"{architecture}"; "{self.host}";}};
APT::Sandbox::User "";
Acquire::Languages "none";
"""
        (folder / "apt.conf").write_text(config, encoding="utf-8")
        self._apt("update")

    def unpack(self, packages: Sequence[str], root: Path) -> None:
        """Packages with what they need, unpacked below `root`."""
        self._apt("--download-only", "--no-install-recommends", "--yes", "install", *packages)
        archives = sorted((self.folder / "cache/archives").glob("*.deb"))
        _unpack(archives, root)
        for file in archives:
            file.unlink()

    def unpack_alone(self, package: str, root: Path, options: Sequence[str] = ()) -> None:
        """One package for this machine's own processor, without what it depends on."""
        self._apt(*options, "download", f"{package}:{self.host}", cwd=self.folder)
        archives = sorted(self.folder.glob("*.deb"))
        _unpack(archives, root)
        for file in archives:
            file.unlink()

    def _apt(self, *words: str, cwd: Path | None = None) -> None:
        environment = {**os.environ, "APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C"}
        command = ["apt-get", "--quiet", *words]
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
        # apt ends with 0 where it used older lists in place of those that it could not get.
        if done.returncode != 0 or (words[0] == "update" and "Failed to fetch" in done.stderr):
            said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
            message = (said or done.stderr.splitlines() or ["no message"])[0]
            raise MachineError(
                f"apt: {message}", shlex.join(command), f"check the network, or {CURE}"
            )


def _unpack(archives: Iterable[Path], root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        try:
            _output(["dpkg-deb", "-x", str(archive), str(root)])
        except subprocess.CalledProcessError as error:
            cure = "free some space, or put the cache elsewhere with EDGEBERT_CACHE"
            raise MachineError(f"dpkg-deb: {error.stderr.strip()}", str(root), cure) from error


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _release() -> str:
    """The release's code name, as apt sources have it."""
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    match = re.search(r"^VERSION_CODENAME=(\S+)", text, re.MULTILINE)
    return match[1] if match else ""
