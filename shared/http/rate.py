"""Rate limit per key, such as a tenant: a token bucket stored as one number (GCRA, ITU-T I.371)."""

from __future__ import annotations

from dataclasses import dataclass, field

NS = 1_000_000_000
LEAST_FORGOTTEN = 1024
"""Entries below which none is forgotten without a call."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Sustained requests per second, and the burst above them."""

    per_s: float
    burst: int

    def __str__(self) -> str:
        return f"at most {self.per_s:g} requests per second with a burst of {self.burst}"


@dataclass(slots=True)
class TokenBuckets:
    """Time at which the bucket of each key is full again, in ns on the caller's clock.

    There is one entry per key that was charged and not forgotten since. Entries of full buckets are
    forgotten whenever their number has doubled, so that addresses and nodes that come once do not
    stay.
    """

    rate: Rate
    _full_at_ns: dict[str, int] = field(default_factory=dict)
    _forget_at: int = LEAST_FORGOTTEN

    def take(self, key: str, now_ns: int) -> int:
        """Count one request and return 0; without room count nothing and return the ns to wait."""
        if wait_ns := self.wait_ns(key, now_ns):
            return wait_ns
        self.spend(key, now_ns, 1)
        return 0

    def wait_ns(self, key: str, now_ns: int) -> int:
        """Return the ns until there is room for one request; 0 if there is."""
        full_at_ns = self._full_at_or_now(key, now_ns) + self._refill_ns
        return max(0, full_at_ns - now_ns - self.rate.burst * self._refill_ns)

    def spend(self, key: str, now_ns: int, count: int) -> None:
        """Count requests that arrived together, even beyond the room: the wait follows."""
        self._full_at_ns[key] = self._full_at_or_now(key, now_ns) + count * self._refill_ns
        if len(self._full_at_ns) >= self._forget_at:
            self.forget_full(now_ns)
            self._forget_at = max(LEAST_FORGOTTEN, 2 * len(self._full_at_ns))

    def forget_full(self, now_ns: int) -> None:
        """Drop the entries of full buckets: a new one is the same."""
        self._full_at_ns = {key: at for key, at in self._full_at_ns.items() if at > now_ns}

    def __contains__(self, key: str) -> bool:
        return key in self._full_at_ns

    def __len__(self) -> int:
        return len(self._full_at_ns)

    @property
    def _refill_ns(self) -> int:
        return round(NS / self.rate.per_s)

    def _full_at_or_now(self, key: str, now_ns: int) -> int:
        return max(self._full_at_ns.get(key, now_ns), now_ns)
