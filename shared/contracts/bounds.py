"""Bounds of the submissions of a tenant, and of a user and a key within them."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from shared.contracts.base import Model, Name
from shared.contracts.job_spec import PRIORITY_CLASSES, JobSpec, PriorityClass

MOST_S = 1e9
"""The longest time of a spec, cluster s: as a bound it is none."""
MOST_GPUS = 262_144.0
MOST_JOBS = 1_000_000_000
MOST_BYTES = 262_144


class JobBounds(Model):
    """Bounds of submissions in each pool.

    Classes, guarantees, grace and walltimes of an operator's submission are not bound.
    """

    pools: tuple[Name, ...] = Field(
        (), max_length=64, description="pools that it may use; empty: all that are open to it"
    )
    highest_class: PriorityClass = Field("high", description="highest priority class of its jobs")
    max_guaranteed_s: float = Field(
        604_800.0,
        ge=0,
        le=MOST_S,
        description="longest `guaranteed_s` of a job, cluster s, and longest `walltime_s` of one "
        "with `preemptible: false`, which below 1e9 must name one",
    )
    max_grace_s: float = Field(
        3600.0, ge=0, le=86400, description="longest `grace_s` of a job, wall s"
    )
    max_walltime_s: float = Field(
        MOST_S,
        gt=0,
        le=MOST_S,
        description="longest `walltime_s` of a job, cluster s; below 1e9 jobs must name one",
    )
    max_job_gpus: float = Field(
        MOST_GPUS, ge=0, le=MOST_GPUS, description="most GPUs of one job, with all workers"
    )
    max_open_jobs: int = Field(
        100_000,
        ge=0,
        le=MOST_JOBS,
        description="most jobs that wait or run in one pool, those of arrays included",
    )
    max_request_bytes: int = Field(
        MOST_BYTES, ge=256, le=MOST_BYTES, description="most bytes of a job's specification"
    )


class TenantBounds(JobBounds):
    """Bounds of a tenant's submissions in each pool, beside its quota."""

    users: Literal["any", "authenticated"] = Field(
        "any",
        description="`authenticated`: a job names no `user` but that of its key or token, as an "
        "event none",
    )


class UserBounds(JobBounds):
    """Bounds of a user's submissions within those of its tenant; by default those hold alone."""

    highest_class: PriorityClass = Field("system", description="highest priority class of its jobs")
    max_guaranteed_s: float = Field(
        MOST_S,
        ge=0,
        le=MOST_S,
        description="longest `guaranteed_s` of a job, cluster s, and longest `walltime_s` of one "
        "with `preemptible: false`, which below 1e9 must name one",
    )
    max_grace_s: float = Field(
        86400.0, ge=0, le=86400, description="longest `grace_s` of a job, wall s"
    )
    max_open_jobs: int = Field(
        MOST_JOBS,
        ge=0,
        le=MOST_JOBS,
        description="most jobs that wait or run in one pool, those of arrays included",
    )
    max_gpus: float = Field(
        MOST_GPUS,
        ge=0,
        le=MOST_GPUS,
        description="most GPUs of the jobs that run, or are queued to run, in one pool at once; "
        "further jobs wait outside of the queue",
    )


UNBOUNDED: Final = TenantBounds(
    highest_class="system", max_guaranteed_s=MOST_S, max_grace_s=86400.0, max_open_jobs=MOST_JOBS
)
"""Bounds of tenants of earlier releases, until an operator sets narrower ones."""


def bounds_in_force(recorded: TenantBounds | None) -> TenantBounds:
    """Return recorded bounds; a tenant of an earlier release has none."""
    return recorded or UNBOUNDED


class Excess(Model):
    """A bound that a job exceeds: the setting, and field, value and rule of the job."""

    setting: str = Field(description="the bound, of JobBounds")
    field: str = Field(description="field of the submission")
    value: str = Field(description="its value")
    rule: str = Field(description="what is allowed")


def exceeds_class(highest: PriorityClass, requested: PriorityClass) -> bool:
    """Return whether a class is above the highest allowed one."""
    return PRIORITY_CLASSES.index(requested) < PRIORITY_CLASSES.index(highest)


def narrowest(bounds: TenantBounds, *within: JobBounds) -> TenantBounds:
    """Return the bounds that hold if all of these do; pools are those of the first."""
    every = (bounds, *within)
    most = {
        name: min(getattr(one, name) for one in every)
        for name in JobBounds.model_fields
        if name.startswith("max_")
    }
    highest = max((one.highest_class for one in every), key=PRIORITY_CLASSES.index)
    return bounds.model_copy(update={**most, "highest_class": highest})


def find_excess(bounds: JobBounds, spec: JobSpec, pool: str, *, by_operator: bool) -> Excess | None:
    """Return the first bound that a job exceeds by itself, or None."""
    if bounds.pools and pool not in bounds.pools:
        return _excess("pools", "pool", pool, "allowed are " + ", ".join(bounds.pools))
    gpus = largest_gpus(spec)
    if gpus > bounds.max_job_gpus:
        rule = f"at most {bounds.max_job_gpus:g} GPUs per job"
        return _excess("max_job_gpus", "gang.workers", f"{gpus:g} GPUs in all", rule)
    if by_operator:
        return None
    if exceeds_class(bounds.highest_class, spec.priority_class):
        rule = f"{bounds.highest_class} is the highest class allowed"
        return _excess("highest_class", "priority_class", spec.priority_class, rule)
    return _find_time_excess(bounds, spec)


def _find_time_excess(bounds: JobBounds, spec: JobSpec) -> Excess | None:
    for field, most in (
        ("guaranteed_s", bounds.max_guaranteed_s),
        ("grace_s", bounds.max_grace_s),
        ("walltime_s", bounds.max_walltime_s),
    ):
        value = getattr(spec, field)
        if value is None and most >= MOST_S:
            continue
        if value is None or value > most:
            shown = "absent" if value is None else f"{value:g}"
            return _excess(f"max_{field}", field, shown, f"at most {most:g} s")
    return _find_endless_guarantee(bounds.max_guaranteed_s, spec)


def _find_endless_guarantee(most: float, spec: JobSpec) -> Excess | None:
    """A job that cannot be preempted has a guarantee of its whole walltime."""
    if spec.preemptible or most >= MOST_S:
        return None
    if spec.walltime_s is not None and spec.walltime_s <= most:
        return None
    shown = "absent" if spec.walltime_s is None else f"{spec.walltime_s:g}"
    rule = f"at most {most:g} s with preemptible: false"
    return _excess("max_guaranteed_s", "walltime_s", shown, rule)


def largest_gpus(spec: JobSpec) -> float:
    """Return the GPUs of a job with all the workers that it may get."""
    workers = spec.gang.workers
    if spec.elastic is not None:
        workers = max(workers, spec.elastic.max_workers)
    return workers * spec.gang.gpus_per_worker


def _excess(setting: str, field: str, value: str, rule: str) -> Excess:
    return Excess(setting=setting, field=field, value=value, rule=rule)
