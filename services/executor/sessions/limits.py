"""The share of an executor that one node may use: requests, bytes, reports and lines."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.executor.sessions.refusal import limited
from shared.rate import NS, Rate, TokenBuckets

REQUESTS = Rate(20, 200)
BYTES = Rate(1024 * 1024, 8 * 1024 * 1024)
REPORTS = Rate(200, 2000)
LINES = Rate(2000, 20_000)


@dataclass(slots=True)
class NodeLimits:
    """One bucket of each kind per node."""

    requests: TokenBuckets = field(default_factory=lambda: TokenBuckets(REQUESTS))
    bytes: TokenBuckets = field(default_factory=lambda: TokenBuckets(BYTES))
    reports: TokenBuckets = field(default_factory=lambda: TokenBuckets(REPORTS))
    lines: TokenBuckets = field(default_factory=lambda: TokenBuckets(LINES))

    def take_request(self, node_id: str, now_ns: int) -> None:
        """Count a request; raises a 429 without room for it."""
        _take(self.requests, "requests", node_id, 1, now_ns)

    def check_bytes(self, node_id: str, now_ns: int) -> None:
        """Raise a 429 while the bytes of earlier bodies are more than the node's share."""
        _take(self.bytes, "bytes", node_id, 0, now_ns)

    def spend_bytes(self, node_id: str, size: int, now_ns: int) -> None:
        """Count the bytes of a body that was read."""
        self.bytes.spend(node_id, now_ns, size)

    def take_reports(self, node_id: str, count: int, now_ns: int) -> None:
        _take(self.reports, "reports", node_id, count, now_ns)

    def take_lines(self, node_id: str, count: int, now_ns: int) -> None:
        _take(self.lines, "lines", node_id, count, now_ns)


def _take(buckets: TokenBuckets, resource: str, node_id: str, count: int, now_ns: int) -> None:
    """A large message is taken as a whole once there is room for one: the wait follows it."""
    if wait_ns := buckets.wait_ns(node_id, now_ns):
        rate = f"{buckets.rate.per_s:g} a second, {buckets.rate.burst} at once, per node"
        raise limited(resource, rate, wait_ns / NS)
    buckets.spend(node_id, now_ns, count)
