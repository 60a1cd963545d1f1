"""Errors of the command line: one line on stderr and an exit code per kind."""

from __future__ import annotations

FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
NOT_FOUND = 4
REFUSED = 5
INTERRUPTED = 130


class CliError(Exception):
    """An error whose text is shown to the user; the process exits with `code`."""

    code = FAILED


class BadInput(CliError):
    """An argument, or a file that it names, is invalid."""

    code = BAD_INPUT


class Unreachable(CliError):
    """The API or broker is unreachable or temporarily unavailable."""

    code = UNREACHABLE


class TooManyRequests(Unreachable):
    """The API takes the same request again after `retry_after_s`."""

    def __init__(self, text: str, retry_after_s: float) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class NotFound(CliError):
    """The object does not exist or belongs to another tenant."""

    code = NOT_FOUND


class Refused(CliError):
    """The request is valid and was refused."""

    code = REFUSED
