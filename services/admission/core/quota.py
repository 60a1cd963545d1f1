"""A tenant's quota: a guaranteed share, a borrowed one above it, and one for its spot jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.admission.core.state import AdmissionState, JobIds, Owner, PendingJob
from shared.contracts.bounds import MOST_GPUS
from shared.contracts.gang_needs import GPU


class QuotaShare(NamedTuple):
    """Used, guaranteed and bound, in thousandths of GPUs; None is no bound."""

    used: int
    guaranteed: int | None
    bound: int | None

    def has_room(self, gpu_milli: int) -> bool:
        return self.bound is None or self.used + gpu_milli <= self.bound

    def fits_when_unused(self, gpu_milli: int) -> bool:
        return self.bound is None or gpu_milli <= self.bound

    def is_borrowed(self, gpu_milli: int) -> bool:
        return self.guaranteed is not None and self.used + gpu_milli > self.guaranteed


def share_of(state: AdmissionState, tenant: str, spot: bool) -> QuotaShare:
    return spot_share(state, tenant) if spot else regular_share(state, tenant)


def regular_share(state: AdmissionState, tenant: str) -> QuotaShare:
    used = state.quota_use.regular.get(tenant, 0)
    quota = state.quotas.get(tenant)
    if quota is None:
        return QuotaShare(used, None, None)
    guaranteed = round(quota.guaranteed_gpus * GPU)
    borrow = quota.borrow_gpus
    bound = None if borrow is None else guaranteed + round(borrow * GPU)
    return QuotaShare(used, guaranteed, bound)


def spot_share(state: AdmissionState, tenant: str) -> QuotaShare:
    """Return use and bound of spot GPUs: of the tenant if it has a bound, else of the pool."""
    quota = state.quotas.get(tenant)
    if quota is not None and quota.spot_gpus is not None:
        used = state.quota_use.spot.get(tenant, 0)
        return QuotaShare(used, None, round(quota.spot_gpus * GPU))
    bound_gpus = state.pool.spot_gpus if state.pool else None
    bound = None if bound_gpus is None else round(bound_gpus * GPU)
    return QuotaShare(state.quota_use.spot_total, None, bound)


def user_share(state: AdmissionState, owner: Owner) -> QuotaShare:
    """Return the GPUs of a user, and how many it may have at once; without a bound it is None."""
    used = state.quota_use.of_users.get(owner, 0)
    bounds = state.users.get(owner.tenant, {}).get(owner.user)
    if bounds is None or bounds.max_gpus >= MOST_GPUS:
        return QuotaShare(used, None, None)
    return QuotaShare(used, None, round(bounds.max_gpus * GPU))


def quota_queue_of(state: AdmissionState, tenant: str, spot: bool) -> JobIds | None:
    waiting = state.waiting
    return (waiting.spot_queues if spot else waiting.quota_queues).get(tenant)


def queue_heads(state: AdmissionState) -> Iterator[PendingJob]:
    """Yield the first job of each tenant's queues."""
    for queues in (state.waiting.quota_queues, state.waiting.spot_queues):
        for queue in queues.values():
            yield state.deferred[next(iter(queue))]


def next_within_quota(state: AdmissionState) -> PendingJob | None:
    """Return the oldest of the queue heads for which there is room, or None.

    A job goes from the queue of its user to that of its tenant, or back, only where the one has
    room for it and the other has none, so that it does not go to and fro.
    """
    waiting = state.waiting
    if not (waiting.quota_queues or waiting.spot_queues or waiting.users_with_room):
        return None
    jobs = [
        job
        for job in queue_heads(state)
        if share_of(state, job.tenant, job.spec.spot).has_room(job.demand.gang_milli)
    ]
    jobs += [
        state.deferred[next(iter(waiting.user_queues[owner]))] for owner in waiting.users_with_room
    ]
    return min(jobs, key=lambda job: job.submitted_at) if jobs else None
