"""The registration of an incarnation: when it is made, and when it is made again."""

from __future__ import annotations

from collections.abc import Callable

from berth_agent.messages import RegistrationReport
from berth_agent.node.workers import Workers

JOIN_MS = 60_000
"""Time after which a registration that was not joined is made again."""


class Registrar:
    """Used under the agent's lock."""

    def __init__(self, workers: Workers, read: Callable[[], RegistrationReport]) -> None:
        self._workers = workers
        self._read = read
        self._is_requested = False
        self._registered_ms: int | None = None

    def begin(self) -> None:
        """Forget what concerned the former incarnation."""
        self._is_requested = False
        self._registered_ms = None

    def request(self) -> None:
        self._is_requested = True

    def next_registration(self, uuid: str, now_ms: int) -> RegistrationReport | None:
        """Return the one that is requested, once nothing of an older incarnation lives."""
        if not (self._is_requested and self._workers.clear_others(uuid)):
            return None
        self._workers.drop_others(uuid)
        self._is_requested = False
        self._registered_ms = now_ms
        return self._read()

    def is_overdue(self, now_ms: int) -> bool:
        """Return once in `JOIN_MS` whether the last registration was not joined in time."""
        if self._registered_ms is None or now_ms - self._registered_ms <= JOIN_MS:
            return False
        self._registered_ms = now_ms
        return True
