"""The verdict on a job: admit, defer or reject, by dependencies, nodes, user and quota."""

from __future__ import annotations

from typing import NamedTuple

from services.admission.core.dependencies import find_status, is_own
from services.admission.core.feasibility import count_workers
from services.admission.core.quota import QuotaShare, quota_queue_of, share_of, user_share
from services.admission.core.state import AdmissionState, JobIds, PendingJob
from shared.contracts.admission import DeferReason
from shared.contracts.array_programs import array_id_of
from shared.contracts.gang_needs import GPU, MIB, NodeKind
from shared.contracts.job_spec import BUNDLES_LABEL, HAS_BUNDLES, HAS_IMAGES, IMAGES_LABEL


class Admit(NamedTuple):
    """The job may enter the queue, beyond its tenant's guaranteed share or within it."""

    borrowed: bool


class Defer(NamedTuple):
    """The job may not enter yet; `detail` holds the numbers."""

    reason: DeferReason
    detail: dict[str, float | str]


class Reject(NamedTuple):
    """The job can never run; `detail` names field, value and rule."""

    reason: str
    detail: str
    is_final: bool = True
    """Whether its idempotency key is used up; otherwise the same submission may come again."""


Verdict = Admit | Defer | Reject


def judge(state: AdmissionState, job: PendingJob, now: int) -> Verdict:
    return (
        check_array(state, job)
        or check_dependencies(state, job)
        or check_nodes(state, job, now)
        or check_user_gpus(state, job)
        or check_quota(state, job)
    )


def check_array(state: AdmissionState, job: PendingJob) -> Defer | None:
    """Hold a new job of an array of which as many jobs are under way as may be at once."""
    array = state.arrays.get(array_id_of(job.job_id, job.array_index))
    if job.reason is not None or array is None or not (array.is_full or array.held):
        return None
    return Defer("array_limit", {"under_way": array.under_way, "ahead": len(array.held)})


def check_dependencies(state: AdmissionState, job: PendingJob) -> Defer | Reject | None:
    missing: list[str] = []
    for dependency in job.spec.depends_on:
        status = None if is_own(dependency, job.job_id) else find_status(state, dependency)
        if status is None or status.tenant != job.tenant:
            return reject_dependency(dependency, job)
        if not status.has_ended:
            missing.append(dependency)
        elif status.phase != "succeeded":
            detail = f"depends_on: {dependency!r}: already {status.phase}"
            return Reject("dependency_failed", detail)
    if not missing:
        return None
    return Defer("dependency", {"missing": len(missing), "first": missing[0]})


def reject_dependency(dependency: str, job: PendingJob) -> Reject:
    """Reject a dependency; a job of another tenant or another pool is reported as unknown."""
    if is_own(dependency, job.job_id):
        return Reject("dependency_cycle", f"depends_on: {dependency!r}: is the job itself")
    detail = f"depends_on: {dependency!r}: no such job of {job.tenant} in this pool"
    return Reject("dependency_missing", detail)


def check_nodes(state: AdmissionState, job: PendingJob, now: int) -> Defer | Reject | None:
    if not state.node_kinds:
        return Defer("no_nodes", {"nodes": 0})
    shape = job.demand.shape
    workers = count_workers(state.node_kinds, shape)
    if workers >= shape.min_workers:
        return None
    if now < state.nodes_settled_at:
        numbers: dict[str, float | str] = {
            "nodes": len(state.nodes),
            "workers": shape.min_workers,
            "fit": workers,
        }
        return Defer("no_nodes", numbers)
    return Reject("infeasible", describe_infeasible(state, job, workers))


def describe_infeasible(state: AdmissionState, job: PendingJob, workers: int) -> str:
    shape = job.demand.shape
    if job.spec.image and not any(map(_runs_images, state.node_kinds)):
        return (
            f"image: {job.spec.image!r}: none of the pool's nodes, {len(state.nodes)}, runs images"
        )
    if job.spec.bundle and not any(map(_takes_bundles, state.node_kinds)):
        return (
            f"bundle: {job.spec.bundle!r}: none of the pool's nodes, {len(state.nodes)}, takes "
            "bundles: upgrade their agents"
        )
    gpu_types = "/".join(job.spec.gpu_types) or "any GPU type"
    labels = ", ".join(f"{key}={value}" for key, value in shape.selector)
    return (
        f"gang.workers: {shape.min_workers}: the pool's nodes, {len(state.nodes)}, could hold"
        f" {workers} worker{'' if workers == 1 else 's'} of {shape.worker_milli / GPU:g} GPUs each"
        f" ({gpu_types}), {shape.cpu_milli / 1000:g} cores, {shape.mem_mib / MIB:g} GiB"
        + (f" on nodes with {labels}" if labels else "")
    )


def _runs_images(kind: NodeKind) -> bool:
    return (IMAGES_LABEL, HAS_IMAGES) in kind.labels


def _takes_bundles(kind: NodeKind) -> bool:
    return (BUNDLES_LABEL, HAS_BUNDLES) in kind.labels


def check_user_gpus(state: AdmissionState, job: PendingJob) -> Defer | None:
    """Defer what is above the GPUs of its user, or behind its other jobs that are."""
    share, gpu_milli = user_share(state, job.owner), job.demand.gang_milli
    if share.bound is None or job.spec.measures is not None:
        return None
    ahead = jobs_ahead(state.waiting.user_queues.get(job.owner), job)
    if share.has_room(gpu_milli) and not ahead:
        return None
    figures = use_of(share, gpu_milli, ahead)
    return Defer("user_gpus", {"user": job.owner.user, **figures, "bound_gpus": share.bound / GPU})


def jobs_ahead(queue: JobIds | None, job: PendingJob) -> int:
    """Return the jobs before one that is the first of its queue or comes to its end."""
    return len(queue) if queue and next(iter(queue)) != job.job_id else 0


def use_of(share: QuotaShare, gpu_milli: int, ahead: int) -> dict[str, float | str]:
    return {"asked_gpus": gpu_milli / GPU, "used_gpus": share.used / GPU, "ahead": ahead}


def check_quota(state: AdmissionState, job: PendingJob) -> Admit | Defer:
    """Defer what is above a bound; a job that measures another one takes over its GPUs."""
    if job.spec.measures is not None:
        return Admit(borrowed=False)
    spot, gpu_milli = job.spec.spot, job.demand.gang_milli
    share = share_of(state, job.tenant, spot)
    ahead = jobs_ahead(quota_queue_of(state, job.tenant, spot), job)
    if share.has_room(gpu_milli) and not ahead:
        return Admit(not spot and share.is_borrowed(gpu_milli))
    detail = use_of(share, gpu_milli, ahead)
    if share.bound is not None:
        detail["bound_gpus"] = share.bound / GPU
    if share.guaranteed is not None:
        detail["guaranteed_gpus"] = share.guaranteed / GPU
    return Defer("spot_quota" if spot else "quota", detail)
