"""The line of a TOML file that an error is about; tomllib does not keep it."""

from collections.abc import Sequence


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
