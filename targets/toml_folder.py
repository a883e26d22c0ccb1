"""Named settings in TOML: a folder of shipped files, or a file of the user's own."""

import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgebert.targets.errors import InputError


@dataclass(frozen=True)
class TomlFolder:
    """The shipped files of one kind.

    Attributes:
        kind: what one is, for messages: `target`, `recipe`.
        folder: where they are.
    """

    kind: str
    folder: Traversable

    def names(self) -> list[str]:
        """Names of the shipped ones."""
        files = (file.name for file in self.folder.iterdir())
        return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))

    def text(self, name_or_file: str) -> str:
        """The TOML of a shipped one by name, or of a user's own file by a path that ends in .toml.

        Raises:
            InputError: unknown name, with the nearest ones, or an unreadable file.
        """
        if name_or_file.endswith(".toml"):
            try:
                return Path(name_or_file).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"cannot read the {self.kind}: {error}", name_or_file) from error
        names = self.names()
        if name_or_file not in names:
            near = difflib.get_close_matches(name_or_file, names, n=3, cutoff=0.3)
            raise InputError(
                f"unknown {self.kind} '{name_or_file}'",
                f"nearest: {', '.join(near or names)}",
                f"`edgebert {self.kind}s` lists them; a path that ends in .toml is your own",
            )
        return (self.folder / f"{name_or_file}.toml").read_text(encoding="utf-8")

    def error(self, error: ValidationError, where: str) -> InputError:
        """The first thing that is wrong in a file, as users see it."""
        first = error.errors()[0]
        field = ".".join(field_path(error))
        cure = f"`edgebert {self.kind}s NAME` prints a valid one"
        return InputError(f"{field}: {first['msg']}", where, cure)


def field_path(error: ValidationError) -> list[str]:
    """Keys from the root to the first field that is wrong, without pydantic's names of types."""
    return [str(part) for part in error.errors()[0]["loc"] if "[" not in str(part)]


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        InputError: it is none, with line and column.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}", where) from error


def line_of(text: str, path: Sequence[str | int]) -> str:
    """`:LINE` where TOML sets the field of `path`, or else its table begins; empty where neither.

    Args:
        text: the TOML.
        path: keys from the root, as pydantic's errors have them; indices of lists do not count.
    """
    keys = [part for part in path if isinstance(part, str)]
    found, section = "", list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith("["):
            section = [part.strip() for part in bare.split("]")[0].strip("[ ").split(".")]
            if section == keys[: len(section)]:
                found = f":{number}"
        elif [*section, bare.split("=")[0].strip().strip('"')] == keys:
            return f":{number}"
    return found
