"""Keeps the credential and the addresses current: a thread that renews long before the end."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

from berth_agent.linux.clocks import wall_ms
from berth_agent.node.connection.http import RequestFailed, is_address
from berth_agent.node.credentials import trust
from berth_agent.node.credentials.executor_access import UNAUTHENTICATED, ExecutorAccess
from berth_agent.node.credentials.identity import (
    Identity,
    prepare_renewal,
    renew,
    tls_of,
    with_installation,
    write_identity,
)
from berth_agent.node.system.machine import hardware_hashes

CHECK_S = 60.0
LEAST_S = 6 * 3600.0
"""Least time between two renewals: to a clock that is ahead each credential is over."""
AHEAD_MS = 7 * 24 * 3600 * 1000
"""Least time before the end at which renewal begins, or a third of the life if that is shorter."""

log = logging.getLogger(__name__)


class Credentials:
    """The present identity, renewed by itself. One thread renews it, others read it."""

    def __init__(
        self, state: str, identity: Identity, machine: Callable[[], Sequence[str]] = hardware_hashes
    ) -> None:
        self._failure = ""
        """Reason for which the last renewal that was due failed."""
        self._machine = machine
        self._state = state
        self._identity = identity
        self._trust_renewed()
        self._renewed_s: float | None = None
        """When a renewal was accepted last, in s of the monotonic clock."""
        self._presents_next = False
        """The present secret was refused: the renewal to the next one was accepted, perhaps."""
        self._is_written = True
        self._executors, self._id = identity.executors, ""

    @property
    def problem(self) -> str:
        """Reason for which the node will lose its access; empty if none is known."""
        return self._failure or trust.problem(self._ca_end_ms, wall_ms())

    @property
    def identity(self) -> Identity:
        """The present identity, as it is on disk or will be."""
        return self._identity

    @property
    def installation(self) -> str:
        """Mark of the installation, as it was heard of last."""
        return self._heard().installation

    def access(self) -> ExecutorAccess:
        return ExecutorAccess(self._executors, self._presented(self._identity), self._tls)

    def note_refused(self, credential: str) -> None:
        """Note that an executor does not know this credential: present the other one, if any."""
        identity = self._identity
        self._presents_next = bool(identity.next_secret) and credential == identity.credential

    def use_executors(self, urls: tuple[str, ...]) -> None:
        """Use these addresses from the next session on, unless others were given at the join."""
        usable = tuple(url for url in urls if is_address(url))
        if usable and not self._identity.has_own_executors:
            self._executors = usable

    def use_installation(self, id: str) -> None:
        """Use the id of the installation, empty for none, as its mark from now on."""
        self._id = id

    def start(self, stopping: threading.Event) -> None:
        def run() -> None:
            logged = ""
            while not stopping.wait(CHECK_S):
                self.renew_if_due(wall_ms())
                ends = trust.problem(self._ca_end_ms, wall_ms())
                if ends and ends != logged:
                    log.warning("%s", ends)
                logged = ends

        threading.Thread(target=run, daemon=True, name="renewal").start()

    def renew_if_due(self, now_ms: int) -> bool:
        """Renew ahead of the end, and go on with a renewal whose answer was lost."""
        try:
            if not self._is_written or self._identity != self._heard():
                self._keep(self._heard())
            if not self._identity.gateway or not self._is_due(now_ms):
                return False
            self._keep(prepare_renewal(self._identity))
            self._keep(replace(self._renewed(), issued_ms=now_ms))
            self._executors = self._identity.executors
        except (RequestFailed, OSError) as error:
            failure = f"the credential is not renewed: {error}"
            if failure != self._failure:
                log.warning("%s", failure)
            self._failure = failure
            return False
        self._failure = ""
        self._renewed_s = monotonic()
        self._trust_renewed()
        log.info("the credential is renewed")
        self._presents_next = False
        return True

    def _trust_renewed(self) -> None:
        """Trust the CA of the present identity in connections from now on."""
        self._tls = tls_of(self._identity)
        self._ca_end_ms = trust.end_ms(self._tls) if self._identity.ca else None

    def _heard(self) -> Identity:
        """Return the identity with what executors have said."""
        return replace(with_installation(self._identity, self._id), executors=self._executors)

    def _is_due(self, now_ms: int) -> bool:
        identity = self._identity
        # Of one that was given at an unknown time this is long, so that it is renewed in good time.
        life_ms = identity.expires_at - identity.issued_ms
        ahead_ms = renewed_ahead_ms(identity.node_id, life_ms)
        if identity.next_secret:
            return True
        is_new = self._renewed_s is not None and monotonic() - self._renewed_s < LEAST_S
        return not is_new and identity.expires_at - now_ms < ahead_ms

    def _renewed(self) -> Identity:
        """Return the renewed identity; the other secret is tried if one is refused."""
        credential = self._presented(self._identity)
        try:
            return renew(self._identity, credential, self._machine())
        except RequestFailed as failure:
            if failure.status != UNAUTHENTICATED:
                raise
        self.note_refused(credential)
        return renew(self._identity, self._presented(self._identity), self._machine())

    def _keep(self, identity: Identity) -> None:
        """Use the identity from now on; a disk that is full is tried again. Raises OSError."""
        self._identity = identity
        self._is_written = False
        write_identity(self._state, identity)
        self._is_written = True

    def _presented(self, identity: Identity) -> str:
        return identity.next_credential if self._presents_next else identity.credential


def renewed_ahead_ms(node_id: str, life_ms: int) -> int:
    """Return how long before its end a credential is renewed, ms.

    It is up to a half longer by the node's name, as nodes that joined together would renew together
    for ever.
    """
    share = int.from_bytes(hashlib.sha256(node_id.encode()).digest()[:2]) / 0xFFFF
    return round(min(AHEAD_MS, life_ms / 3) * (1 + share / 2))
