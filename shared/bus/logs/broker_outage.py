"""Retries while the broker is away, with growing pauses and a log line at each end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError

T = TypeVar("T")

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 3.0

log = logging.getLogger(__name__)


class Broker:
    """The reachability of the broker, as the clients of this process see it."""

    def __init__(self) -> None:
        self.away_since_s: float | None = None

    def missed(self, error: BaseException) -> None:
        if self.away_since_s is None:
            self.away_since_s = time.monotonic()
            log.warning("the broker does not answer: waiting for it", extra={"why": repr(error)})

    def answered(self) -> None:
        if self.away_since_s is not None:
            away_s = round(time.monotonic() - self.away_since_s, 1)
            self.away_since_s = None
            log.warning("the broker answers again", extra={"away_s": away_s})


BROKER = Broker()


def is_passing(error: BaseException) -> bool:
    """Return whether the error may pass by itself; a wrong password or a missing right does not."""
    if isinstance(error, KafkaError):
        return isinstance(error, KafkaConnectionError | KafkaTimeoutError) or bool(error.retriable)
    return isinstance(error, OSError | TimeoutError)


async def retry_while_away(request: Callable[[], Awaitable[T]], max_s: float) -> T:
    """Return the result of `request`, repeated while the broker is away, for `max_s` at most."""
    ends_s, pause_s = time.monotonic() + max_s, FIRST_PAUSE_S
    while True:
        try:
            result = await request()
        except (KafkaError, OSError, TimeoutError) as error:
            if not is_passing(error) or time.monotonic() > ends_s:
                raise
            BROKER.missed(error)
        else:
            BROKER.answered()
            return result
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
