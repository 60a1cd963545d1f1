"""Keeps the credential and the addresses current: a thread that renews long before the end."""

from __future__ import annotations

import logging
import threading

from berth_agent.linux.clocks import wall_ms
from berth_agent.node.http import RequestFailed
from berth_agent.node.identity import Identity, prepare_renewal, renew, tls_of, write_identity
from berth_agent.node.session import Access

CHECK_S = 60.0
AHEAD_MS = 7 * 24 * 3600 * 1000
"""Time before the end at which renewal begins, or half of the life if that is shorter."""

log = logging.getLogger(__name__)


class Credentials:
    """The present identity, renewed by itself."""

    def __init__(self, state: str, identity: Identity, now_ms: int) -> None:
        self._state = state
        self._identity = identity
        self._tls = tls_of(identity)
        self._read_ms = now_ms

    def access(self) -> Access:
        return Access(self._identity.executors, self._identity.credential, self._tls)

    def start(self, stopping: threading.Event) -> None:
        def run() -> None:
            while not stopping.wait(CHECK_S):
                self.renew_if_due(wall_ms())

        threading.Thread(target=run, daemon=True, name="renewal").start()

    def renew_if_due(self, now_ms: int) -> bool:
        """Renew close to the end, and go on with a renewal whose answer was lost."""
        left_ms = self._identity.expires_at - now_ms
        life_ms = self._identity.expires_at - self._read_ms
        due = left_ms < min(AHEAD_MS, life_ms // 2)
        if not self._identity.gateway or not (due or self._identity.next_secret):
            return False
        try:
            self._identity = prepare_renewal(self._identity)
            write_identity(self._state, self._identity)
            self._identity = renew(self._identity)
            write_identity(self._state, self._identity)
        except (RequestFailed, OSError) as error:
            log.warning("the credential is not renewed: %s", error)
            return False
        self._read_ms = now_ms
        return True
