"""A board that answers to ssh: the bundle goes there, run.py runs there, its lines come back.

The device needs a Python with the bundle's requirements: `~/.edgebert/bin/python` where it is
there (`python3 -m venv ~/.edgebert`), else `python3`. Host keys are held to the user's known_hosts
and configuration as `ssh` does, and an unknown one is refused.
"""

import asyncio
import io
import os
import re
import shlex
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebert.pipeline.runners.runner import (
    RUN_PY,
    SILENCE_S,
    Answer,
    Job,
    LostConnection,
    failure,
    read_answer,
)
from edgebert.targets.errors import EdgebertError, InputError, MachineError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

CONNECT_S = 15.0
KEEPALIVE_S = 5.0  # a device that does not answer three of these is gone
_NAME = re.compile(r"ssh:(?:(?P<user>[^@:]+)@)?(?P<host>\[[^]]+\]|[^@:]+)(?::(?P<port>\d+))?")
# The folder of a run lives as long as this shell, and the shell as long as the connection: where
# it breaks, the end of its input lets `cat` go on to end what runs there and remove the folder.
GUARD = (
    'd=$(mktemp -d "${TMPDIR:-/tmp}/edgebert.XXXXXXXX") || exit 1; echo "$d"; cat > /dev/null; '
    '[ -f "$d/pid" ] && kill "$(cat "$d/pid")" 2> /dev/null; rm -rf "$d"'
)
PYTHON = 'p="$HOME/.edgebert/bin/python"; [ -x "$p" ] || p=python3; exec "$p"'


@dataclass(frozen=True)
class SshRunner:
    """Runs jobs over ssh.

    Attributes:
        name: as in `Runner`.
        user: None: as the user's ssh configuration says.
        host: name or address.
        port: None: as the user's ssh configuration says.
        silence_s: seconds without an answer after which it is given up.
    """

    name: str
    user: str | None
    host: str
    port: int | None
    emulated: bool = False
    silence_s: float = SILENCE_S

    def run(self, job: Job) -> Iterator[Answer]:
        """As in `Runner.run`."""
        answers, loop = self._answers(job), asyncio.new_event_loop()
        try:
            while (answer := loop.run_until_complete(_next(answers))) is not None:
                yield answer
        finally:
            loop.run_until_complete(answers.aclose())
            loop.close()

    async def _answers(self, job: Job) -> AsyncGenerator[Answer]:
        import asyncssh

        async with self._connection() as connection:
            try:
                async with self._folder(connection) as folder:
                    words = await self._upload(connection, job, folder)
                    # Libraries leave files where TMPDIR says (onnxruntime: `.ses`).
                    place = shlex.quote(folder)
                    start = f"TMPDIR={place}; export TMPDIR; echo $$ > {place}/pid; {PYTHON}"
                    command = f"{start} {shlex.join(words)}"
                    async for line in self._lines(connection, command):
                        yield read_answer(line, self.name)
            except (asyncssh.Error, OSError) as error:
                raise LostConnection(
                    f"the connection broke: {error or type(error).__name__}",
                    self.name,
                    "run it again",
                ) from error

    @asynccontextmanager
    async def _connection(self) -> "AsyncIterator[SSHClientConnection]":
        import asyncssh

        target = {"username": self.user, "port": self.port}
        try:
            connection = await asyncssh.connect(
                self.host,
                **{name: value for name, value in target.items() if value is not None},
                connect_timeout=CONNECT_S,
                login_timeout=CONNECT_S,
                keepalive_interval=KEEPALIVE_S,
                encoding=None,
            )
        except (asyncssh.Error, OSError) as error:
            raise self._refused(error) from error
        try:
            yield connection
        finally:
            connection.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(connection.wait_closed(), CONNECT_S)

    def _refused(self, error: Exception) -> EdgebertError:
        """What kept a connection from being made."""
        import asyncssh

        port = f"-p {self.port} " if self.port else ""
        login = f"{self.user}@{self.host}" if self.user else self.host
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            cure = (
                f"compare its fingerprint with the device's and accept it once: ssh {port}{login}"
            )
            return MachineError("its host key is not the one in known_hosts", self.name, cure)
        if isinstance(error, asyncssh.PermissionDenied):
            cure = f"put your key there: ssh-copy-id {port}{login}"
            return MachineError("it does not take this user's key", self.name, cure)
        if isinstance(error, asyncssh.KeyImportError | asyncssh.ConfigParseError):
            return InputError(f"ssh configuration: {error}", "~/.ssh", "correct it")
        if isinstance(error, TimeoutError):
            what = f"no answer within {CONNECT_S:g} s"
        else:
            what = f"not reachable: {getattr(error, 'strerror', None) or error}"
        return LostConnection(
            what, self.name, f"switch it on, or check the name: ssh {port}{login}"
        )

    @asynccontextmanager
    async def _folder(self, connection: "SSHClientConnection") -> AsyncIterator[str]:
        """A folder on the device that goes when the block ends or the connection breaks."""
        guard = await connection.create_process(GUARD)
        path = (await guard.stdout.readline()).decode().strip()
        if not path:
            said = (await guard.stderr.read()).decode(errors="replace").strip()
            raise MachineError(
                f"no folder for the bundle: {said}", self.name, "free some space there"
            )
        try:
            yield path
        finally:
            guard.stdin.write_eof()
            await guard.wait()

    async def _upload(self, connection: "SSHClientConnection", job: Job, folder: str) -> list[str]:
        """Bring run.py and the job's files there; the words of the command line."""
        files = {f"{folder}/run.py": RUN_PY}
        words = [f"{folder}/run.py"]
        for index, word in enumerate(job.arguments):
            if isinstance(word, Path):
                place = f"{folder}/{index}-{word.name}"
                files[place] = word
                words.append(place)
            else:
                words.append(word)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for place, file in files.items():
                tar.add(file, os.path.relpath(place, folder), filter=_plain)
        size_mb = archive.tell() / 1e6
        unpack = f"tar -xf - -C {shlex.quote(folder)}"
        done = await connection.run(unpack, input=archive.getvalue(), encoding=None)
        if done.exit_status != 0:
            stderr = done.stderr if isinstance(done.stderr, bytes) else b""
            said = stderr.decode(errors="replace").strip().splitlines()
            full = next((line for line in said if "No space" in line), None)
            what = f"cannot write there: {full or (said or ['tar was killed'])[0]}"
            cure = f"free {size_mb:.1f} MB on the device, or set TMPDIR there"
            raise MachineError(what, self.name, cure)
        return words

    async def _lines(self, connection: "SSHClientConnection", command: str) -> AsyncIterator[str]:
        import asyncssh

        process = await connection.create_process(command, stdin=asyncssh.DEVNULL)
        error = asyncio.ensure_future(process.stderr.read())
        answered = False
        try:
            while True:
                try:
                    line = await asyncio.wait_for(process.stdout.readline(), self.silence_s)
                except TimeoutError:
                    what = f"no answer for {self.silence_s:g} s"
                    raise MachineError(
                        what, self.name, "free the device, or take fewer rows"
                    ) from None
                if not line.endswith(b"\n"):
                    break
                answered = True
                yield line.decode()
            stderr = (await error).decode(errors="replace")
            await process.wait_closed()
        finally:
            error.cancel()
        if process.exit_status is None and process.exit_signal is None:
            raise LostConnection("the connection broke", self.name, "run it again")
        code = -9 if process.exit_signal else int(process.exit_status or 0)
        if code != 0 and not (code == 1 and answered):
            raise failure(code, stderr, f"run.py on {self.name}")


async def _next(answers: AsyncIterator[Answer]) -> Answer | None:
    return await anext(answers, None)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Files and folders without this machine's owners; no caches of Python."""
    if "__pycache__" in member.name:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def ssh_runner(name: str) -> SshRunner:
    """The runner `ssh:USER@HOST[:PORT]`; user and port may come from the ssh configuration.

    Raises:
        InputError: not of that form.
    """
    match: Any = _NAME.fullmatch(name)
    if match is None:
        raise InputError(
            f"cannot read '{name}'", "--on", "write ssh:USER@HOST or ssh:USER@HOST:PORT"
        )
    port = None if match["port"] is None else int(match["port"])
    return SshRunner(name, match["user"], match["host"].strip("[]"), port)
