"""The two errors a user can meet; they live in the lowest layer because every layer raises them.

An error says what is wrong, where (file, line, field) and what to do about it, in at most three
lines.
"""


class EdgebertError(Exception):
    """Base of every expected failure.

    Args:
        what: what is wrong, one line.
        where: file, line, field or stage that it is about; empty when `what` says it.
        cure: what to do about it; one line.
    """

    exit_code = 1

    def __init__(self, what: str, where: str = "", cure: str = "") -> None:
        self.what, self.where, self.cure = what, where, cure
        super().__init__("\n".join(line for line in (what, where, cure) if line))


class InputError(EdgebertError):
    """The user's input is wrong: unknown name, unreadable or malformed file, contradiction."""

    exit_code = 2


class MachineError(EdgebertError):
    """The machine lacks something: network, device, program, package, disk, memory."""

    exit_code = 3
