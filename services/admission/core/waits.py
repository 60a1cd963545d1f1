"""Where a deferred job waits, and what brings it back: called by `evolve` alone."""

from __future__ import annotations

from collections import OrderedDict

from services.admission.core.dependencies import missing
from services.admission.core.feasibility import fits
from services.admission.core.quota import share_of
from services.admission.core.state import Job, Line, Pool


def put(lines: dict[str, Line], key: str, job_id: str) -> None:
    lines.setdefault(key, OrderedDict())[job_id] = None


def take(lines: dict[str, Line], key: str, job_id: str) -> None:
    """An empty line is none."""
    line = lines.get(key)
    if line is None:
        return
    line.pop(job_id, None)
    if not line:
        del lines[key]


def wait(state: Pool, job: Job) -> None:
    """Stand where the job's reason says."""
    match job.reason:
        case "quota" | "spot_quota":
            queue(state, job)
        case "dependency":
            job.missing = set(missing(state, job.spec.depends_on))
            for dependency in job.spec.depends_on:
                if dependency in job.missing:
                    put(state.waits.dependents, dependency, job.job_id)
        case _:
            state.waits.nodeless[job.job_id] = None


def queue(state: Pool, job: Job) -> None:
    waits, spot = state.waits, job.spec.spot
    if not share_of(state, job.tenant, spot).could_ever_take(job.need.gang_milli):
        put(waits.parked, job.tenant, job.job_id)
    else:
        put(waits.spot_lines if spot else waits.lines, job.tenant, job.job_id)


def leave(state: Pool, job: Job) -> None:
    """Wait nowhere any more."""
    waits, job_id = state.waits, job.job_id
    waits.again.pop(job_id, None)
    waits.nodeless.pop(job_id, None)
    if job.reason in ("quota", "spot_quota"):
        for lines in (waits.lines, waits.spot_lines, waits.parked):
            take(lines, job.tenant, job_id)
    for dependency in job.spec.depends_on:
        if dependency in job.missing:
            take(waits.dependents, dependency, job_id)
    job.missing.clear()


def wake_dependents(state: Pool, ended_id: str, succeeded: bool) -> None:
    """One failure is enough to look again; of successes it takes all."""
    for job_id in state.waits.dependents.pop(ended_id, ()):
        job = state.deferred[job_id]
        job.missing.discard(ended_id)
        if not succeeded or not job.missing:
            state.waits.again[job_id] = None


def sort_by_nodes(state: Pool) -> None:
    """After nodes came or went: those that fit now are looked at, the others wait on."""
    waits = state.waits
    again = [job_id for job_id in waits.again if state.deferred[job_id].reason == "no_nodes"]
    for job_id in (*again, *waits.nodeless):
        if fits(state.shapes, state.deferred[job_id].need):
            waits.nodeless.pop(job_id, None)
            waits.again[job_id] = None
        else:
            waits.again.pop(job_id, None)
            waits.nodeless[job_id] = None


def sort_by_bounds(state: Pool, tenants: list[str]) -> None:
    """After bounds changed: who can never be taken stands aside, first come first."""
    waits = state.waits
    for tenant in tenants:
        waiting: dict[str, None] = {}
        for lines in (waits.lines, waits.spot_lines, waits.parked):
            waiting |= lines.pop(tenant, {})
        jobs = [state.deferred[job_id] for job_id in waiting]
        for job in sorted(jobs, key=lambda job: job.submitted_at):
            queue(state, job)


def waiting_tenants(state: Pool) -> list[str]:
    waits = state.waits
    return list(dict.fromkeys((*waits.lines, *waits.spot_lines, *waits.parked)))
