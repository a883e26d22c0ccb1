"""The group of commands: errors of at most three lines and the exit codes of the contract."""

import difflib
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from edgebert.pipeline.folders import abandon
from edgebert.targets.errors import EdgebertError, InputError, MachineError

INTERRUPTED = 130
DEBUG = "--debug"
_WIDTH = 400  # of a line of an error; what libraries say may be a page long


class Group(click.Group):
    """Commands in the order they are used; `--debug` anywhere shows tracebacks."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for; an unknown one is told with the nearest."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.commands, n=3, cutoff=0.4)
            raise InputError(
                f"no command '{args[0]}'",
                f"nearest: {', '.join(near or self.commands)}",
                "`edgebert --help` lists them",
            )
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command; every failure ends the process with its message and exit code."""
        words = list(sys.argv[1:] if args is None else args)
        options = words[: words.index("--")] if "--" in words else words
        debug = DEBUG in options
        if debug:
            words.remove(DEBUG)
            words.insert(0, DEBUG)
        try:
            with _ending_at_once():
                return super().main(words, *rest, **{**extra, "standalone_mode": False})
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(0)
        except click.ClickException as error:
            context = error.ctx if isinstance(error, click.UsageError) else None
            path = context.command_path if context else "edgebert"
            _fail(InputError(error.format_message(), "", f"`{path} --help` shows what it takes"))
        except EdgebertError as error:
            if debug:
                raise
            _fail(error)
        except MemoryError:
            _fail(MachineError("too little memory", "", "close programs, or take a smaller model"))
        except Exception as error:
            if debug:
                raise
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                where = str(error.filename or "")
                _fail(MachineError("the disk is full", where, "free some space"))
            what = f"{type(error).__name__}: {error}"
            where = "a fault of edgebert or of a library"
            _fail(EdgebertError(what, where, "run it again with --debug and report what it prints"))


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """End at once on SIGINT.

    As an exception it would have to find its way out of the libraries, and one that arrives while
    torch loads its extensions is a segmentation fault.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stderr = os.dup(2)  # the real one: `quiet_libraries` puts a file in its place

    def end(*_: object) -> NoReturn:
        abandon()
        os.write(stderr, b"interrupted\n")
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(stderr)


def _fail(error: EdgebertError) -> NoReturn:
    """Print what, where and what to do, a line each, and end the process."""
    lines = (f"error: {error.what}", error.where, error.cure)
    for line in (" ".join(line.split()) for line in lines):
        if line:
            click.echo(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…", err=True)
    sys.exit(error.exit_code)
