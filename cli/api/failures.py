"""Errors of the client as those of the command line: a line and an exit code."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from berth_client import BerthError, installation, transport
from berth_client.errors import NO_ANSWER
from cli.errors import BadInput, CliError, NotFound, Refused, TooManyRequests, Unreachable

WITHOUT_ANSWER = frozenset(
    {
        NO_ANSWER,
        installation.NO_STACK,
        installation.BAD_FILE,
        transport.BAD_ADDRESS,
        transport.NOT_BERTH,
        transport.UNTRUSTED,
    }
)
"""Reasons of the client itself, which say nothing beside their detail."""
RETRY_S = 1.0
"""When a request is made again that is answered with 429, if the answer does not say."""


@contextmanager
def cli_errors(folder: Path | None = None) -> Iterator[None]:
    """Raise the error of the client within as one of `errors.py`; `folder`: that of the stack."""
    try:
        yield
    except BerthError as error:
        raise _cli_error(error, folder) from None


def _cli_error(error: BerthError, folder: Path | None) -> CliError:
    text = error.detail if error.reason in WITHOUT_ANSWER else str(error)
    match error.status, error.reason:
        case 404 | 410, _:
            return NotFound(text)
        case (400 | 405 | 413 | 415 | 422, _) | (0, installation.BAD_FILE | transport.BAD_ADDRESS):
            return BadInput(text)
        case 401, _:
            return Refused(
                f"{text}; BERTH_KEY holds the key, an admin makes one: `berth keys create`"
            )
        case 403 | 409, _:
            return Refused(text)
        case 429, _:
            return TooManyRequests(text, error.retry_after_s or RETRY_S)
        case 0 | 502 | 503 | 504, _:
            return Unreachable(text + _hint(error.__cause__, folder))
        case _:
            return CliError(text)


def _hint(cause: BaseException | None, folder: Path | None) -> str:
    if isinstance(cause, ConnectionRefusedError) and folder is not None:
        return f"; `berth status` shows the stack in {folder}, `berth up` starts one"
    if isinstance(cause, (ConnectionRefusedError, socket.gaierror)):
        return "; BERTH_URL is the address of the gateway: `berth status` shows it on its machine"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"; {_certificate_rule(cause.verify_message)}"
    return ""


def _certificate_rule(text: str) -> str:
    """Return what to do about a certificate that was not accepted for this reason."""
    if "not yet valid" in text or "expired" in text:
        return "look at the clock of this machine (`date -u`), then at the server's certificate"
    if "mismatch" in text or "not valid for" in text:
        return "its certificate is for other names: use one of them as the address"
    return "`--ca FILE` (or BERTH_CA) names the CA of the installation"
