"""Which GPUs a running job has: a chain of spans, one per node, out of a common store."""

from __future__ import annotations

from simulator.kernel.board import shift
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Ints, Job, Pool, Spans


@compiled
def assign(pool: Pool, spans: Spans, job: Job, placed: Spans, count: int) -> None:
    """The job has what `place` took."""
    last = -1
    for at in range(count):
        new = pool.spare_span
        span = spans[new]
        pool.spare_span = span.next
        span.node = placed[at].node
        span.gpus = placed[at].gpus
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
def clear(pool: Pool, spans: Spans, job: Job) -> None:
    """The job has no spans any more."""
    at = job.span
    job.span = -1
    while at >= 0:
        span = spans[at]
        following = span.next
        span.next = pool.spare_span
        pool.spare_span = at
        at = following
