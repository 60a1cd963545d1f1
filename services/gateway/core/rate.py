"""How often a tenant may ask: a token bucket each, kept as one number (GCRA, ITU-T I.371)."""

from __future__ import annotations

from dataclasses import dataclass, field

NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests a second in the long run, and so many at once."""

    per_s: float
    burst: int

    def __str__(self) -> str:
        return f"at most {self.per_s:g} requests a second, and {self.burst} at once"


@dataclass(slots=True)
class TokenBuckets:
    """Of each tenant the moment at which its bucket will be full again, ns on the caller's clock.

    As many entries as tenants that asked; they are registered ones, and no key makes one up.
    """

    rate: Rate
    _full_at_ns: dict[str, int] = field(default_factory=dict)

    def take(self, tenant: str, now_ns: int) -> int:
        """0: the request is counted and may go on. Else nothing is counted, and after so many ns
        there is room for one."""
        if wait_ns := self.wait_ns(tenant, now_ns):
            return wait_ns
        self.spend(tenant, now_ns, 1)
        return 0

    def wait_ns(self, tenant: str, now_ns: int) -> int:
        """Until there is room for one; 0 where there is."""
        full_at_ns = self._full(tenant, now_ns) + self._refill_ns
        return max(0, full_at_ns - now_ns - self.rate.burst * self._refill_ns)

    def spend(self, tenant: str, now_ns: int, many: int) -> None:
        """Counts what came in one piece, also beyond the room that there was: it is waited for
        afterwards."""
        self._full_at_ns[tenant] = self._full(tenant, now_ns) + many * self._refill_ns

    @property
    def _refill_ns(self) -> int:
        return round(NS / self.rate.per_s)

    def _full(self, tenant: str, now_ns: int) -> int:
        return max(self._full_at_ns.get(tenant, now_ns), now_ns)
