"""How the command line says no: one line on stderr, and an exit code that means something."""

from __future__ import annotations

FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
NOT_FOUND = 4
REFUSED = 5
INTERRUPTED = 130


class CliError(Exception):
    """Shown to the user as it stands; `code` is what the process ends with."""

    code = FAILED


class BadInput(CliError):
    """What was typed, or the file that it names, cannot be used."""

    code = BAD_INPUT


class Unreachable(CliError):
    """Nobody answers there, or only that it cannot answer now."""

    code = UNREACHABLE


class NotFound(CliError):
    """There is no such thing, or it is another tenant's."""

    code = NOT_FOUND


class Refused(CliError):
    """Understood, and denied."""

    code = REFUSED
