"""Sets the free time that the engines of one endpoint give to the retraining of adapters.

The policy is MACE's, in two parts. Here the share follows the deadlines that the clients of the
endpoint met or missed, window after window; which adapter an iteration trains, and on how many
tokens, is decided within the engine (`core/retraining.py` has both).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.throttle.core.retraining import RetrainingLimits, after_window
from services.throttle.upstreams.pool import UpstreamPool
from shared.contracts.endpoints import EndpointConfigured, SharedWithRetraining

WINDOW_S = 5.0
PATH = "/retraining"
FIRST_SHARE = 1.0

log = logging.getLogger(__name__)


class RetrainingShare:
    """The share of one endpoint; `value` is None while its GPUs are not shared."""

    def __init__(
        self,
        endpoint: Callable[[], EndpointConfigured | None],
        noted: Callable[[], float | None],
        engines: UpstreamPool,
        window_s: float = WINDOW_S,
    ) -> None:
        """`noted` returns the share that the ledger has, with which a new process goes on."""
        self._endpoint = endpoint
        self._noted = noted
        self._engines = engines
        self._window_s = window_s
        self._requests = self._missed = 0
        self._refusing: dict[str, int] = {}
        self.value: float | None = None

    @property
    def limits(self) -> SharedWithRetraining | None:
        endpoint = self._endpoint()
        return None if endpoint is None else endpoint.retraining

    def note(self, ttft_s: float, served_s: float, output_tokens: int) -> None:
        """Count a request that ended: the time to its first token, and from there to its end."""
        limits = self.limits
        if limits is None:
            return
        tpot_s = served_s / (output_tokens - 1) if output_tokens > 1 else 0.0
        self._requests += 1
        self._missed += ttft_s > limits.ttft_s or tpot_s > limits.tpot_s

    async def run(self) -> None:
        """Decide and send it to the engines, once per window, until cancelled."""
        self.value = self._noted()
        while True:
            await self.decide()
            await asyncio.sleep(self._window_s)

    async def decide(self) -> None:
        """End a window. Engines that were started meanwhile get the share as well."""
        limits, before = self.limits, self.value
        requests, missed = self._requests, self._missed
        self._requests = self._missed = 0
        if limits is None:
            self.value = None
            if before is not None:
                await self._send({"share": 0.0})
        else:
            window = RetrainingLimits(limits.ttft_s, limits.tpot_s, limits.freshness_s)
            share = FIRST_SHARE if before is None else before
            self.value = round(after_window(share, requests, missed, window), 4)
            await self._send({"share": self.value, **limits.model_dump()})
        if self.value != before:
            self._engines.changed.set()

    async def _send(self, document: object) -> None:
        statuses = await self._engines.put(PATH, document)
        refusing = {name: status for name, status in statuses.items() if status != 200}
        if refusing != self._refusing:
            log.warning("engines that retrain nothing", extra={"engines": refusing})
        self._refusing = refusing
