"""Refusals that are answered without a record: of a tenant whose requests are refused all the time.

The ledger keeps each record for ever, and whoever has a key can send thousands of requests that a
limit refuses.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from services.throttle.core.enqueue import Rejection, refusal_now
from services.throttle.core.state import EndpointState
from shared.contracts.llm import ServeLlmRequest
from shared.http.rate import Rate, TokenBuckets

RECORDED = Rate(1, 600)
"""Rejections of a tenant at an endpoint that the ledger gets, by this process."""


class UnrecordedRefusals:
    """Counts recorded rejections by tenant and endpoint; `count` gets endpoint and reason of each
    refusal that is not recorded."""

    def __init__(
        self,
        count: Callable[[str, str], None] = lambda endpoint, reason: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._recorded = TokenBuckets(RECORDED)
        self._count = count
        self._clock_ns = clock_ns

    def note(self, command: ServeLlmRequest) -> None:
        """Count a rejection that the ledger has."""
        self._recorded.spend(_key(command), self._clock_ns(), 1)

    def refuse(self, state: EndpointState, command: ServeLlmRequest, at: int) -> Rejection | None:
        """Return why the request is refused at a time of the ledger, ms, without a record.

        None for one that the decider has to decide: it may be queued, or its tenant was refused
        rarely.
        """
        key = _key(command)
        if key not in self._recorded or not self._recorded.wait_ns(key, self._clock_ns()):
            return None
        rejection = refusal_now(state, command, at - state.stepped_ms)
        if rejection is not None:
            self._count(command.endpoint, rejection.reason)
        return rejection


def _key(command: ServeLlmRequest) -> str:
    return f"{command.tenant}/{command.endpoint}"
