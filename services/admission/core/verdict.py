"""Admit, defer or reject: everything that stands between a job and the queue, in order."""

from __future__ import annotations

from typing import NamedTuple

from services.admission.core.dependencies import is_own, standing
from services.admission.core.feasibility import most_workers
from services.admission.core.need import GPU, MIB
from services.admission.core.quota import line_of, share_of
from services.admission.core.state import Job, Pool
from shared.contracts.jobs import DeferReason


class Admit(NamedTuple):
    """In; beyond its tenant's guaranteed share or within it."""

    borrowed: bool


class Defer(NamedTuple):
    """Not yet, with the numbers."""

    reason: DeferReason
    detail: dict[str, float | str]


class Reject(NamedTuple):
    """Never; `detail` says field, value and rule."""

    reason: str
    detail: str


Verdict = Admit | Defer | Reject


def verdict(state: Pool, job: Job, now: int) -> Verdict:
    return by_dependencies(state, job) or by_nodes(state, job, now) or by_quota(state, job)


def by_dependencies(state: Pool, job: Job) -> Defer | Reject | None:
    waits_for: list[str] = []
    for dependency in job.spec.depends_on:
        found = None if is_own(dependency, job.job_id) else standing(state, dependency)
        if found is None or found.tenant != job.tenant:
            return no_such(dependency, job)
        if not found.has_ended:
            waits_for.append(dependency)
        elif found.phase != "succeeded":
            detail = f"depends_on: {dependency!r}: has {found.phase}"
            return Reject("dependency_failed", detail)
    if not waits_for:
        return None
    return Defer("dependency", {"missing": len(waits_for), "first": waits_for[0]})


def no_such(dependency: str, job: Job) -> Reject:
    """A job of another tenant or another pool is as unknown as one that never was."""
    if is_own(dependency, job.job_id):
        return Reject("dependency_cycle", f"depends_on: {dependency!r}: is the job itself")
    detail = f"depends_on: {dependency!r}: no such job of {job.tenant} in this pool"
    return Reject("dependency_missing", detail)


def by_nodes(state: Pool, job: Job, now: int) -> Defer | Reject | None:
    if not state.shapes:
        return Defer("no_nodes", {"nodes": 0})
    need = job.need
    most = most_workers(state.shapes, need)
    if most >= need.workers:
        return None
    if now < state.settled_at:
        numbers: dict[str, float | str] = {
            "nodes": len(state.nodes),
            "workers": need.workers,
            "fit": most,
        }
        return Defer("no_nodes", numbers)
    return Reject("infeasible", too_much(state, job, most))


def too_much(state: Pool, job: Job, most: int) -> str:
    need = job.need
    where = "/".join(need.types) or "any GPU type"
    labels = ", ".join(f"{key}={value}" for key, value in sorted(need.selector.items()))
    return (
        f"gang.workers: {need.workers}: the pool's {len(state.nodes)} nodes could hold {most}"
        f" of {need.gpu_milli / GPU:g} GPUs ({where}), {need.cpu_milli / 1000:g} cores,"
        f" {need.mem_mib / MIB:g} GiB" + (f" on nodes with {labels}" if labels else "")
    )


def by_quota(state: Pool, job: Job) -> Admit | Defer:
    spot, milli = job.spec.spot, job.need.gang_milli
    share = share_of(state, job.tenant, spot)
    line = line_of(state, job.tenant, spot)
    ahead = len(line) if line and next(iter(line)) != job.job_id else 0
    if share.takes(milli) and not ahead:
        return Admit(not spot and share.is_borrowed(milli))
    detail: dict[str, float | str] = {
        "asked_gpus": milli / GPU,
        "used_gpus": share.used / GPU,
        "ahead": ahead,
    }
    if share.bound is not None:
        detail["bound_gpus"] = share.bound / GPU
    if share.guaranteed is not None:
        detail["guaranteed_gpus"] = share.guaranteed / GPU
    return Defer("spot_quota" if spot else "quota", detail)
