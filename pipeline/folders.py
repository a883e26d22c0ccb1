"""Write a folder whole or not at all."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from edgebert.targets.errors import InputError, MachineError

FULL_BYTES = 1 << 20  # less than this is free where a library's write has failed for want of it

_being_written: list[tuple[Path, Path, Path]] = []  # (out, staging, older)


@contextmanager
def replace_folder(
    out: Path, may_replace: Callable[[Path], None], cure: str = "give another --out"
) -> Iterator[Path]:
    """Build a folder beside `out` and rename it into place when the block ends without an error.

    An older folder at `out` stays until then. A process killed on the way leaves nothing at `out`
    that was not there before; what it left beside it is removed by the next one.

    Args:
        out: the folder to make.
        may_replace: raises InputError where what is at `out` must stay; called before and after.
        cure: what a user does where `out` cannot be written.

    Yields:
        The folder to write to.

    Raises:
        MachineError: the disk is full.
        InputError: `out` cannot be written.
    """
    out = out.absolute()  # "." has no name
    with _beside(out, cure) as (staging, older):
        if out.exists():
            may_replace(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(out)
        staging.mkdir()
        yield staging
        for file in staging.rglob("*"):
            if not file.is_symlink():  # it may point to nothing
                _sync(file)
        _sync(staging)
        if out.exists():
            may_replace(out)
            out.rename(older)
        staging.rename(out)
        _sync(out.parent)


@contextmanager
def replace_files(out: Path, cure: str) -> Iterator[Path]:
    """Write files beside the folder `out` and rename each into it when all of them are written.

    Args:
        out: the folder; its other files stay.
        cure: what a user does where `out` cannot be written.

    Yields:
        The folder to write to.

    Raises:
        MachineError: the disk is full.
        InputError: `out` cannot be written.
    """
    out = out.absolute()
    with _beside(out, cure) as (staging, _):
        _remove_leftovers(out)
        staging.mkdir()
        yield staging
        files = sorted(staging.iterdir())
        for file in files:
            _sync(file)
        for file in files:
            file.replace(out / file.name)
        _sync(out)


@contextmanager
def _beside(out: Path, cure: str) -> Iterator[tuple[Path, Path]]:
    """Names beside `out` for the new and the older one; both are gone or in place at the end."""
    staging = out.with_name(f".{out.name}.{os.getpid()}.partial")
    older = staging.with_suffix(".older")
    being_written = (out, staging, older)
    _being_written.append(being_written)
    try:
        yield staging, older
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise MachineError(
                f"the disk is full: {error.strerror}",
                str(out),
                f"free some space, or {cure}",
            ) from error
        raise InputError(f"cannot write: {error}", str(out), cure) from error
    except (InputError, MachineError):
        raise
    except Exception as error:  # libraries have errors of their own for a file that is cut short
        if shutil.disk_usage(staging.parent).free < FULL_BYTES:
            raise MachineError(
                "the disk is full", str(out), f"free some space, or {cure}"
            ) from error
        raise
    finally:
        _put_back(*being_written)
        _being_written.remove(being_written)


def abandon() -> None:
    """Put back all that is being written, in a process that is about to end at once."""
    for folders in _being_written:
        _put_back(*folders)


def _put_back(out: Path, staging: Path, older: Path) -> None:
    if older.exists() and not out.exists():
        older.rename(out)
    for folder in (staging, older):
        shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(out: Path) -> None:
    """Remove what killed processes left, and put back what one had moved away."""
    prefix = f".{out.name}."
    for folder in sorted(out.parent.iterdir()):
        if not folder.name.startswith(prefix):
            continue
        process, _, kind = folder.name.removeprefix(prefix).partition(".")
        if kind not in ("partial", "older") or not process.isdigit() or _alive(int(process)):
            continue
        if kind == "older" and not out.exists():
            folder.rename(out)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _alive(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
