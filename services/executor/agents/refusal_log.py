"""Refused requests of agents: each is counted, and the first of each node and reason is logged."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from services.executor.agents.refusal import Refused
from services.executor.agents.sessions import CLONED
from shared.contracts.keys import parse_key
from shared.telemetry.metrics import Metrics

AGAIN_S = 3600.0
MAX_LOGGED = 10_000
"""Limit of remembered nodes and reasons; the oldest are forgotten first."""
OF_THE_NODE = frozenset({400, 401, 403, 413})
"""Statuses that no other executor and no wait would change."""

log = logging.getLogger(__name__)


class RefusalLog:
    """Counts and logs; a node is named as its credential does, which may be wrong."""

    def __init__(self, metrics: Metrics, now_s: Callable[[], float] = monotonic) -> None:
        self._count = metrics.agent_refusals
        self._now_s = now_s
        self._logged: OrderedDict[tuple[str, str], float] = OrderedDict()

    def note(self, credential: str, address: str, refused: Refused) -> None:
        """Note a refused request: its credential without its secret, and its address."""
        reason = refused.problem.reason
        self._count.labels(reason).inc()
        parsed = parse_key(credential)
        source = parsed.key_id if parsed is not None else address
        if (refused.status in OF_THE_NODE or reason == CLONED) and self._is_due((source, reason)):
            extra = {"node": source, "address": address, "reason": reason}
            log.warning("agent refused", extra={**extra, "detail": refused.problem.detail})

    def _is_due(self, key: tuple[str, str]) -> bool:
        now_s = self._now_s()
        if now_s - self._logged.get(key, -AGAIN_S) < AGAIN_S:
            return False
        self._logged[key] = now_s
        self._logged.move_to_end(key)
        if len(self._logged) > MAX_LOGGED:
            self._logged.popitem(last=False)
        return True
