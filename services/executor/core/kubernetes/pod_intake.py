"""The intake of pods that users created: jobs of them, their cancellation, and messages to users.

Like `reconcile` it is a pure function of the ledgers and of one look. `IntakeMemory` has times, and
submissions that no ledger shows yet; without it they are sent again, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from services.executor.core.kubernetes.pod_groups import (
    FreePod,
    PodGroup,
    PodSubmission,
    groups_of,
    submission_of,
)
from services.executor.core.kubernetes.pod_jobs import PodJob, PodJobs
from services.executor.core.kubernetes.pods import ENDED_PHASES, PodSeen

REPEAT_S = 60.0
"""Time after which a submission that no ledger shows is sent again."""
CANCEL_AGAIN_S = 10.0
POST_AGAIN_S = 10.0
"""Least time between two messages to the same pods."""
POST_AFTER_S = 1.0
"""Least time that pods wait before the first message: most have a node by then, and need none."""
MESSAGE_CHARS = 1024
GONE = "a pod of it is gone, in Kubernetes; pods that replace it are another job"


class TenantPods(NamedTuple):
    """A tenant whose namespace is looked at."""

    tenant: str
    is_default: bool
    """The pool is the one of its pods that name none."""


@dataclass(slots=True)
class IntakeMemory:
    """Times of what was sent, s, by the id of a job; of messages, and of the first look at pods
    that wait, by the first pod."""

    submitted: dict[str, tuple[PodJob, float]] = field(default_factory=dict)
    cancelled_s: dict[str, float] = field(default_factory=dict)
    posted_s: dict[str, float] = field(default_factory=dict)
    waits_since_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IntakeLook:
    """One look at the pods of all tenants, and the jobs that the ledgers know."""

    pool: str
    time_scale: float
    tenants: Mapping[str, TenantPods]
    """By namespace."""
    pods: tuple[PodSeen, ...]
    placed: Mapping[str, PodJob]
    """Jobs of pods that placement has not ended, in the order in which they were enqueued."""
    working: frozenset[str]
    """Jobs with workers that are not released."""
    admission: PodJobs
    placement: PodJobs
    memory: IntakeMemory
    now_s: float


class PodCancel(NamedTuple):
    tenant: str
    job_id: str
    reason: str


class Message(NamedTuple):
    """The text that the pods of a gang are to carry."""

    pods: tuple[PodSeen, ...]
    text: str


@dataclass(slots=True)
class Intake:
    """Submissions, cancels and messages that are to be sent."""

    submissions: list[PodSubmission] = field(default_factory=list)
    cancels: list[PodCancel] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


def take_in(look: IntakeLook) -> Intake:
    """Return jobs to submit and to cancel, and messages to pods that wait."""
    intake, taken = Intake(), set[str]()
    by_uid = {pod.uid: pod for pod in look.pods}
    for job_id, job in _live(look).items():
        members = tuple(pod for uid in job.pods if (pod := by_uid.get(uid)) is not None)
        own = {pod.uid for pod in members if _tenant_of(look, pod) == job.tenant}
        is_working = job_id in look.working
        may_go_on = _goes_on if is_working else _waits
        if len(own) < len(job.pods) or own & taken or not all(map(may_go_on, members)):
            _cancel(look, job_id, job, intake)
        elif not is_working:
            _post(look, members, _words(look, job_id, job), intake)
        taken |= own
    rest = [member for member in _free(look) if member.pod.uid not in taken]
    for group in groups_of(rest):
        _of_group(look, group, intake)
    _prune(look)
    return intake


def _tenant_of(look: IntakeLook, pod: PodSeen) -> str:
    """Return the tenant of a pod's namespace, empty if it has none: no job has pods of others."""
    tenant = look.tenants.get(pod.namespace)
    return "" if tenant is None else tenant.tenant


def _free(look: IntakeLook) -> Iterator[FreePod]:
    """Yield the pods of tenants that wait, and name this pool or have it by default."""
    for pod in look.pods:
        request, tenant = pod.request, look.tenants.get(pod.namespace)
        if request is None or tenant is None or request.is_gated:
            continue
        is_here = request.pool == look.pool or (not request.pool and tenant.is_default)
        if is_here and _waits(pod):
            yield FreePod(pod, request)


def _waits(pod: PodSeen) -> bool:
    """Return whether a pod may still get a node; one with an identity has become a worker."""
    return not (pod.node or pod.identity or pod.is_deleted or pod.is_over)


def _goes_on(pod: PodSeen) -> bool:
    """Return whether a worker runs, has ended, or is ended by Berth: its user did not delete it."""
    return not pod.is_deleted or pod.is_marked or pod.phase in ENDED_PHASES


def _live(look: IntakeLook) -> dict[str, PodJob]:
    """Return the jobs of pods that have not ended, by id; of two with one pod the earlier counts.

    Last are those that were submitted a moment ago, which no ledger shows yet.
    """
    ended = look.placement.ended.keys() | look.admission.ended.keys()
    submitted = {
        job_id: job
        for job_id, (job, sent_s) in look.memory.submitted.items()
        if job_id not in look.admission.refused and look.now_s - sent_s < REPEAT_S
    }
    known = {**submitted, **look.admission.waiting, **look.placed}
    order = dict.fromkeys(chain(look.placed, look.admission.waiting, submitted))
    return {job_id: known[job_id] for job_id in order if job_id not in ended}


def _cancel(look: IntakeLook, job_id: str, job: PodJob, intake: Intake) -> None:
    """Cancel a job that cannot start or go on; one of a retired tenant ends once it is placed."""
    if all(tenant.tenant != job.tenant for tenant in look.tenants.values()):
        return
    cancelled_s = look.memory.cancelled_s.get(job_id)
    if cancelled_s is None or look.now_s - cancelled_s >= CANCEL_AGAIN_S:
        intake.cancels.append(PodCancel(job.tenant, job_id, GONE))


def _of_group(look: IntakeLook, group: PodGroup, intake: Intake) -> None:
    """Submit a group that is whole, or post to its pods why it is not, or how its job ended."""
    if group.fault:
        _post(look, group.pods, f"Berth cannot place it: {group.fault}", intake)
        return
    if not group.is_whole:
        there = f"{len(group.members)} of {group.size} pods of group {group.name} are there"
        _post(look, group.pods, there, intake)
        return
    tenant = look.tenants[group.namespace].tenant
    submission = submission_of(group, tenant, look.pool, look.time_scale)
    job_id, uids = submission.job_id, {pod.uid for pod in group.pods}
    ends = chain(look.placement.ended.items(), look.admission.ended.items())
    end = next(((name, job.words) for name, job in ends if set(job.pods) == uids), None)
    refusal = look.admission.refused.get(job_id)
    if end is not None:
        _post(look, group.pods, _of_job(end[0], f"{end[1]}; delete the pods"), intake)
        return
    if refusal is not None:
        _post(look, group.pods, _of_job(job_id, refusal.words), intake)
    if refusal is None or not refusal.is_final:
        known = look.memory.submitted.get(job_id)
        if known is None or look.now_s - known[1] >= REPEAT_S:
            intake.submissions.append(submission)


def _words(look: IntakeLook, job_id: str, job: PodJob) -> str:
    known = look.placement.waiting.get(job_id) or look.admission.waiting.get(job_id) or job
    return _of_job(job_id, known.words)


def _of_job(job_id: str, words: str) -> str:
    return f"job {job_id} of Berth: {words}" if words else ""


def _post(look: IntakeLook, pods: tuple[PodSeen, ...], text: str, intake: Intake) -> None:
    """Have a text written to the pods that do not have it, and to none of them again soon."""
    uid, memory = pods[0].uid, look.memory
    waited_s = look.now_s - memory.waits_since_s.setdefault(uid, look.now_s)
    if uid in memory.posted_s:
        is_due = look.now_s - memory.posted_s[uid] >= POST_AGAIN_S
    else:
        is_due = waited_s >= POST_AFTER_S
    if not is_due or not text:
        return
    text = text[:MESSAGE_CHARS]
    without = tuple(p for p in pods if p.request is not None and p.request.message != text)
    if without:
        intake.messages.append(Message(without, text))


def _prune(look: IntakeLook) -> None:
    """Forget what is over, so that the memory is bounded by the pods and jobs that are there."""
    memory, now_s = look.memory, look.now_s
    uids = {pod.uid for pod in look.pods}
    memory.posted_s = {uid: s for uid, s in memory.posted_s.items() if uid in uids}
    since = memory.waits_since_s.items()
    memory.waits_since_s = {uid: s for uid, s in since if uid in uids}
    memory.cancelled_s = {
        job_id: s for job_id, s in memory.cancelled_s.items() if now_s - s < REPEAT_S
    }
    memory.submitted = {
        job_id: (job, s)
        for job_id, (job, s) in memory.submitted.items()
        if job_id not in look.placed and now_s - s < 2 * REPEAT_S
    }
