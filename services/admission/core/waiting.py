"""Moves deferred jobs between the sets of `WaitingJobs`; called by `evolve` alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

from services.admission.core.dependencies import unfinished_dependencies
from services.admission.core.feasibility import fits
from services.admission.core.quota import share_of, user_share
from services.admission.core.state import AdmissionState, JobArray, JobIds, Owner, PendingJob
from shared.contracts.array_programs import array_id_of

Key = TypeVar("Key")


def add_to(queues: dict[Key, JobIds], key: Key, job_id: str) -> None:
    queues.setdefault(key, OrderedDict())[job_id] = None


def remove_from(queues: dict[Key, JobIds], key: Key, job_id: str) -> None:
    """Remove a job from its queue, and the queue itself when it is empty."""
    queue = queues.get(key)
    if queue is None:
        return
    queue.pop(job_id, None)
    if not queue:
        del queues[key]


def start_waiting(state: AdmissionState, job: PendingJob) -> None:
    """Put the job into the set of its defer reason."""
    match job.reason:
        case "quota" | "spot_quota":
            join_quota_queue(state, job)
        case "user_gpus":
            join_user_queue(state, job)
        case "array_limit":
            state.arrays[array_id_of(job.job_id, job.array_index)].held[job.job_id] = None
        case "dependency":
            job.missing = set(unfinished_dependencies(state, job.spec.depends_on))
            for dependency in job.spec.depends_on:
                if dependency in job.missing:
                    add_to(state.waiting.dependents, dependency, job.job_id)
        case _:
            state.waiting.awaiting_nodes[job.job_id] = None


def join_quota_queue(state: AdmissionState, job: PendingJob) -> None:
    waiting, spot = state.waiting, job.spec.spot
    if not share_of(state, job.tenant, spot).fits_when_unused(job.demand.gang_milli):
        add_to(waiting.oversized, job.tenant, job.job_id)
    else:
        queues = waiting.spot_queues if spot else waiting.quota_queues
        add_to(queues, job.tenant, job.job_id)


def join_user_queue(state: AdmissionState, job: PendingJob) -> None:
    waiting, owner = state.waiting, job.owner
    fits_alone = user_share(state, owner).fits_when_unused(job.demand.gang_milli)
    add_to(waiting.user_queues if fits_alone else waiting.user_oversized, owner, job.job_id)
    note_room(state, owner)


def note_room(state: AdmissionState, owner: Owner) -> None:
    """Note whether the first queued job of a user has room, as its use or its queue has changed."""
    waiting = state.waiting
    queue = waiting.user_queues.get(owner)
    if queue is None:
        waiting.users_with_room.pop(owner, None)
        return
    first = state.deferred[next(iter(queue))]
    if user_share(state, owner).has_room(first.demand.gang_milli):
        waiting.users_with_room[owner] = None
    else:
        waiting.users_with_room.pop(owner, None)


def stop_waiting(state: AdmissionState, job: PendingJob) -> None:
    """Remove the job from all that it waits in."""
    waiting, job_id = state.waiting, job.job_id
    waiting.ready.pop(job_id, None)
    waiting.awaiting_nodes.pop(job_id, None)
    if job.reason == "array_limit":
        state.arrays[array_id_of(job_id, job.array_index)].held.pop(job_id, None)
    if job.reason in ("quota", "spot_quota"):
        for queues in (waiting.quota_queues, waiting.spot_queues, waiting.oversized):
            remove_from(queues, job.tenant, job_id)
    if job.reason == "user_gpus":
        remove_from(waiting.user_queues, job.owner, job_id)
        remove_from(waiting.user_oversized, job.owner, job_id)
        note_room(state, job.owner)
    for dependency in job.spec.depends_on:
        if dependency in job.missing:
            remove_from(waiting.dependents, dependency, job_id)
    job.missing.clear()


def wake_dependents(state: AdmissionState, ended_id: str, succeeded: bool) -> None:
    """Make dependents ready: one failure is enough, of successes it takes all."""
    for job_id in state.waiting.dependents.pop(ended_id, ()):
        job = state.deferred[job_id]
        job.missing.discard(ended_id)
        if not succeeded or not job.missing:
            state.waiting.ready[job_id] = None


def wake_held(state: AdmissionState, array: JobArray) -> None:
    """Make held jobs of an array ready, as many as may be under way besides the others."""
    while array.held and not array.cancels and not array.is_full:
        job_id, _ = array.held.popitem(last=False)
        state.waiting.ready[job_id] = None


def requeue_by_nodes(state: AdmissionState) -> None:
    """Make ready the jobs that fit the present nodes; the others wait for nodes."""
    waiting = state.waiting
    ready = [job_id for job_id in waiting.ready if state.deferred[job_id].reason == "no_nodes"]
    for job_id in (*ready, *waiting.awaiting_nodes):
        if fits(state.node_kinds, state.deferred[job_id].demand.shape):
            waiting.awaiting_nodes.pop(job_id, None)
            waiting.ready[job_id] = None
        else:
            waiting.ready.pop(job_id, None)
            waiting.awaiting_nodes[job_id] = None


def requeue_by_quota(state: AdmissionState, tenants: list[str]) -> None:
    """Skip the jobs above the changed bounds, and queue the rest by submission."""
    waiting = state.waiting
    for tenant in tenants:
        queues = (waiting.quota_queues, waiting.spot_queues, waiting.oversized)
        for job in oldest_first(state, pop_queued(queues, tenant)):
            join_quota_queue(state, job)


def requeue_by_user(state: AdmissionState, owner: Owner) -> None:
    """Queue the jobs of a user by its changed bound; without one nothing of it keeps them."""
    waiting = state.waiting
    job_ids = pop_queued((waiting.user_queues, waiting.user_oversized), owner)
    waiting.users_with_room.pop(owner, None)
    if user_share(state, owner).bound is None:
        waiting.ready.update(job_ids)
        return
    for job in oldest_first(state, job_ids):
        join_user_queue(state, job)


def pop_queued(queues: Iterable[dict[Key, JobIds]], key: Key) -> dict[str, None]:
    """Remove the queues of a key, and return their jobs in the order of the queues."""
    job_ids: dict[str, None] = {}
    for by_key in queues:
        job_ids |= by_key.pop(key, {})
    return job_ids


def oldest_first(state: AdmissionState, job_ids: Iterable[str]) -> list[PendingJob]:
    jobs = (state.deferred[job_id] for job_id in job_ids)
    return sorted(jobs, key=lambda job: job.submitted_at)


def waiting_tenants(state: AdmissionState) -> list[str]:
    """Return the tenants with a job that waits for quota, without repeats."""
    waiting = state.waiting
    return list(dict.fromkeys((*waiting.quota_queues, *waiting.spot_queues, *waiting.oversized)))
