"""A tenant's shares: guaranteed first, borrowed above it, spot jobs by a quota of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.admission.core.forecast import spot_gpus
from services.admission.core.need import GPU
from services.admission.core.state import Job, Line, Pool


class Share(NamedTuple):
    """Thousandths of GPUs; None is no bound."""

    used: int
    guaranteed: int | None
    bound: int | None

    def takes(self, milli: int) -> bool:
        return self.bound is None or self.used + milli <= self.bound

    def could_ever_take(self, milli: int) -> bool:
        return self.bound is None or milli <= self.bound

    def is_borrowed(self, milli: int) -> bool:
        return self.guaranteed is not None and self.used + milli > self.guaranteed


def share_of(state: Pool, tenant: str, spot: bool) -> Share:
    return spot_share(state, tenant) if spot else regular_share(state, tenant)


def regular_share(state: Pool, tenant: str) -> Share:
    used = state.used.regular.get(tenant, 0)
    quota = state.quotas.get(tenant)
    if quota is None:
        return Share(used, None, None)
    guaranteed = round(quota.guaranteed_gpus * GPU)
    borrow = quota.borrow_gpus
    return Share(used, guaranteed, None if borrow is None else guaranteed + round(borrow * GPU))


def spot_share(state: Pool, tenant: str) -> Share:
    """The tenant's own bound counts its own jobs, the pool's counts everybody's."""
    quota = state.quotas.get(tenant)
    if quota is not None and quota.spot_gpus is not None:
        return Share(state.used.spot.get(tenant, 0), None, round(quota.spot_gpus * GPU))
    pool = spot_gpus(state)
    return Share(state.used.spot_total, None, None if pool is None else round(pool * GPU))


def line_of(state: Pool, tenant: str, spot: bool) -> Line | None:
    return (state.waits.spot_lines if spot else state.waits.lines).get(tenant)


def heads(state: Pool) -> Iterator[Job]:
    """The first of each line."""
    for lines in (state.waits.lines, state.waits.spot_lines):
        for line in lines.values():
            yield state.deferred[next(iter(line))]


def next_in_line(state: Pool) -> Job | None:
    """Of the heads that their share takes, the one that came first."""
    ready = [
        job
        for job in heads(state)
        if share_of(state, job.tenant, job.spec.spot).takes(job.need.gang_milli)
    ]
    return min(ready, key=lambda job: job.submitted_at) if ready else None
