"""Limits of joins: failed ones by address, valid ones by token."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.gateway.responses.problem import limited
from shared.http.rate import NS, Rate, TokenBuckets

FAILED = Rate(0.2, 20)
"""Wrong tokens and credentials of one address."""
VALID = Rate(50, 1000)
"""Joins with one token: an operator may add a whole cluster at once."""
MAX_ADDRESSES = 10_000
OTHERS = ""
"""The bucket of all further addresses, once so many are being limited."""


@dataclass(slots=True)
class JoinLimits:
    """Buckets of joins. Nothing is kept of an address whose bucket is full again."""

    failed: TokenBuckets = field(default_factory=lambda: TokenBuckets(FAILED))
    valid: TokenBuckets = field(default_factory=lambda: TokenBuckets(VALID))

    def check_address(self, address: str, now_ns: int) -> None:
        """Raise a 429 for an address that failed too often lately."""
        if wait_ns := self.failed.wait_ns(self._bucket(address, now_ns), now_ns):
            raise limited("failed joins of one address", FAILED, wait_ns / NS)

    def note_failure(self, address: str, now_ns: int) -> None:
        self.failed.spend(self._bucket(address, now_ns), now_ns, 1)

    def take(self, token_id: str, now_ns: int) -> None:
        """Count a join with a valid token; raise a 429 without room for it."""
        if wait_ns := self.valid.take(token_id, now_ns):
            raise limited("joins with one token", VALID, wait_ns / NS)

    def _bucket(self, address: str, now_ns: int) -> str:
        if len(self.failed) >= MAX_ADDRESSES and address not in self.failed:
            self.failed.forget_full(now_ns)
        has_room = address in self.failed or len(self.failed) < MAX_ADDRESSES
        return address if has_room else OTHERS
