"""Which GPUs a running job has: a chain of spans, one per node, out of a common store."""

from __future__ import annotations

from simulator.kernel.board import shift
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Ints, Job, Pool, Spans


@compiled
def lowest(bits: int, count: int) -> int:
    """The lowest so many of these bits."""
    found = 0
    left = bits
    for _ in range(count):
        bit = left & -left
        found |= bit
        left ^= bit
    return found


@compiled
def assign(pool: Pool, spans: Spans, bits: Ints, job: Job, placed: Spans, count: int) -> None:
    """The job has what `place` took, the lowest free GPUs of each node."""
    last = -1
    for at in range(count):
        new = pool.spare_span
        span = spans[new]
        pool.spare_span = span.next
        span.node = placed[at].node
        span.gpus = placed[at].gpus
        span.bits = lowest(bits[span.node], span.gpus)
        bits[span.node] ^= span.bits
        span.next = last
        last = new
    job.span = last


@compiled
def shift_all(free: Ints, levels: Ints, spans: Spans, first: int, sign: int) -> None:
    """Give back (1) or take again (-1) the GPUs of the chain that begins there."""
    at = first
    while at >= 0:
        span = spans[at]
        shift(free, levels, span.node, sign * span.gpus)
        at = span.next


@compiled
def clear(pool: Pool, spans: Spans, bits: Ints, job: Job) -> None:
    """The job has no spans any more, and their GPUs are free."""
    at = job.span
    job.span = -1
    while at >= 0:
        span = spans[at]
        following = span.next
        bits[span.node] |= span.bits
        span.next = pool.spare_span
        pool.spare_span = at
        at = following
