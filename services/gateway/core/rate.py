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
class Buckets:
    """Of each tenant the moment at which its bucket will be full again, ns on the caller's clock.

    As many entries as tenants that asked; they are registered ones, and no key makes one up.
    """

    rate: Rate
    _full_at_ns: dict[str, int] = field(default_factory=dict)

    def take(self, tenant: str, now_ns: int) -> int:
        """0: the request is counted and may go on. Else nothing is counted, and after so many ns
        there is room for one."""
        refill_ns = round(NS / self.rate.per_s)
        full_at_ns = max(self._full_at_ns.get(tenant, now_ns), now_ns) + refill_ns
        wait_ns = full_at_ns - now_ns - self.rate.burst * refill_ns
        if wait_ns > 0:
            return wait_ns
        self._full_at_ns[tenant] = full_at_ns
        return 0
