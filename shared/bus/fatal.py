"""The end of a process that must not go on: the supervisor restarts it from the log."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from typing import Any, NoReturn

from shared.ledger.errors import BusError, ProtocolViolation
from shared.process.open_files import raise_limit

EXIT_ERROR = 70
EXIT_PROTOCOL = 71
"""A restart would end in the same way: supervisors do not try it."""

log = logging.getLogger(__name__)


class Died(BusError):
    """A task of a library ended without an error."""


def die(error: BaseException, where: str) -> NoReturn:
    """Log the error in one line and exit at once, without clean-up that could hang or write."""
    error = _first(error)
    if isinstance(error, ProtocolViolation):
        see = f"; see {error.runbook}" if error.runbook else ""
        log.critical("%s stops: %s: %s%s", where, type(error).__name__, error, see)
        code = EXIT_PROTOCOL
    else:
        log.critical("%s: %s: %s", where, type(error).__name__, error, exc_info=error)
        code = EXIT_ERROR
    logging.shutdown()
    os._exit(code)


def run_to_end(work: Coroutine[Any, Any, None], where: str) -> None:
    """Run `work` to its end; a ProtocolViolation ends the process as it ends a decider."""
    raise_limit()
    try:
        asyncio.run(work)
    except* ProtocolViolation as broken:
        die(broken, where)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def supervise(work: Coroutine[Any, Any, None], where: str) -> asyncio.Task[None]:
    """Run `work` in the background; whatever it raises ends the process.

    A CancelledError without a request to cancel counts too: aiokafka raises it where one of its
    own tasks has died, and the work would end unnoticed.
    """

    def ended(task: asyncio.Task[None]) -> None:
        if task.cancelled():
            if not task.cancelling():
                die(Died("a task that it awaited was cancelled"), where)
        elif (error := task.exception()) is not None:
            die(error, where)

    task = asyncio.get_running_loop().create_task(work, name=where)
    task.add_done_callback(ended)
    return task
