"""Output tokens of an answer that ended without a usage: estimated by the bytes of its text.

An engine may pack several tokens into one chunk. A client that leaves would pay one for each chunk,
however many it has read.
"""

from __future__ import annotations

from collections import OrderedDict

from services.throttle.relay.tokens import FIRST_RATIO, LEAST_RATIO, MOST_RATIO, MOST_TENANTS

KEPT = 0.98
"""Part of the weight of earlier answers that one more leaves."""


class AnswerTokens:
    """Bytes of text per output token of one model, as complete answers had them, by tenant.

    A tenant is estimated by its own answers, or by the lower median of all tenants: none of them
    changes what others pay by itself.
    """

    def __init__(self) -> None:
        self._sums: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Bytes and tokens."""

    def ratio_of(self, tenant: str) -> float:
        if tenant in self._sums:
            return _ratio(*self._sums[tenant])
        ranked = sorted(_ratio(*sums) for sums in self._sums.values())
        return ranked[(len(ranked) - 1) // 2] if ranked else FIRST_RATIO

    def estimate(self, tenant: str, text_bytes: int) -> int:
        return int(text_bytes / self.ratio_of(tenant))

    def observe(self, tenant: str, text_bytes: int, tokens: int) -> None:
        """Learn from a complete answer."""
        if text_bytes < 1 or tokens < 1:
            return
        before_bytes, before_tokens = self._sums.pop(tenant, (0.0, 0.0))
        self._sums[tenant] = (KEPT * before_bytes + text_bytes, KEPT * before_tokens + tokens)
        if len(self._sums) > MOST_TENANTS:
            self._sums.popitem(last=False)


def _ratio(text_bytes: float, tokens: float) -> float:
    return min(max(text_bytes / tokens, LEAST_RATIO), MOST_RATIO)
