"""One round of look-ahead: GPUs that running jobs should give back soon, and jobs that may wait.

A job that declares its speeds may be over sooner if it waits for faster GPUs, or for closer ones.
By the estimates of run times a release has an expected moment. A job that starts there after a wait
has done its work as if it started now at a lower speed, and that speed is what the wait is worth.
Without an estimate nothing is waited for. No job waits for longer, in all, than its slowest GPUs
would cost it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU
from services.placement.core.round.fit import nodes_to_avoid
from services.placement.core.round.view import View
from services.placement.core.solver.instance import GangRequest, Instance, Release, Wait
from services.placement.core.solver.look_ahead_gangs import Opening, openings_of
from services.placement.core.solver.releases import MOST_MS, NodeRelease, next_releases
from services.placement.core.solver.speeds import best_speed, may_run_on, speed_on, speeds_in


def with_releases(view: View, instance: Instance) -> Instance:
    """Return the instance with the releases for which its jobs may wait, in greedy's plan as well.

    Rounds in which a job may stop others have none: their reservations look ahead already.
    """
    if instance.victims or not any(is_patient(view, r) for r in instance.requests):
        return instance
    releases = next_releases(view)
    of_plan = [Release(release.gpus, release.at) for release in releases]
    requests = []
    for request in instance.requests:
        waits: list[tuple[int, int]] = []
        if is_patient(view, request) and request.max_workers == 1:
            waits += waits_of(view, request, releases)
        elif is_patient(view, request):
            for opening in waits_of_gang(view, request, releases):
                waits.append((len(of_plan), opening.speed))
                of_plan.append(Release(request.gpus, opening.at))
        requests.append(replace(request, waits=tuple(waits)))
    instance = replace(instance, requests=tuple(requests), releases=tuple(of_plan))
    return replace(instance, greedy=replace(instance.greedy, waits=waits_in_order(instance)))


def is_patient(view: View, request: GangRequest) -> bool:
    """Return whether the job has whole GPUs, an estimate, and speeds that make GPUs differ."""
    if request.is_share or not request.gpus or request.victims:
        return False
    job = view.waiting[request.job_id]
    declares = job.spec.gpu_speeds if request.max_workers == 1 else request.spread
    return bool(declares) and job.estimate_ms(view.time_scale) is not None


def waits_of(
    view: View, request: GangRequest, releases: Sequence[NodeRelease]
) -> Iterator[tuple[int, int]]:
    """Yield the releases that a job of one worker may wait for, and what speed each is worth."""
    job = view.waiting[request.job_id]
    full_ms, patience_ms = full_run_ms(view, job), patience(view, job, request)
    avoid = nodes_to_avoid(view.board, job, job.shape)
    for number, (at, node, gpus) in enumerate(releases):
        delay_ms = at - view.now
        suited = may_run_on(job.shape, node) and node.node_id not in avoid
        if suited and gpus >= job.shape.gpus and delay_ms <= patience_ms:
            yield number, delayed(speed_on(view.board, job, node), delay_ms, full_ms)


def waits_of_gang(
    view: View, request: GangRequest, releases: Sequence[NodeRelease]
) -> Iterator[Opening]:
    """Yield the moments that a gang may wait for, and what speed each is worth.

    Each is a release of its own, with GPUs for one gang's worker: no other job waits for it.
    """
    job = view.waiting[request.job_id]
    full_ms, patience_ms = full_run_ms(view, job), patience(view, job, request)
    for at, own in openings_of(view, job, request, releases):
        delay_ms = at - view.now
        if delay_ms <= patience_ms:
            yield Opening(at, delayed(own, delay_ms, full_ms))


def patience(view: View, job: Job, request: GangRequest) -> float:
    """Return how many wall ms the job may still wait for better GPUs."""
    link = request.spread[1] if request.spread else GPU
    least = max(1, slowest(view, job) * link // GPU)
    patience_ms = full_run_ms(view, job) * (GPU / least - 1)
    return min(patience_ms, MOST_MS) - (view.now - job.since)


def full_run_ms(view: View, job: Job) -> float:
    """Return the wall ms that a job with an estimate should run at its best speed."""
    estimate_ms = job.estimate_ms(view.time_scale)
    assert estimate_ms is not None, "the job is patient"
    return max(1.0, estimate_ms / best_speed(view.board, job))


def delayed(speed: int, delay_ms: int, full_ms: float) -> int:
    """Return the speed now at which a job would be over as soon as at `speed` after a delay."""
    own = speed / GPU
    return max(1, round(GPU * own / (1 + delay_ms * own / full_ms)))


def slowest(view: View, job: Job) -> int:
    """Return the thousandths of its best speed on the slowest GPU type that it may have."""
    best = best_speed(view.board, job)
    least = min(speeds_in(view.board, job), default=best)
    return max(1, round(GPU * least / best))


def waits_in_order(instance: Instance) -> tuple[Wait, ...]:
    """Return the waits of the jobs that greedy does not start, in queue order, the best first."""
    begun = {start.request for start in instance.greedy.starts}
    left = [release.gpus for release in instance.releases]
    waits = []
    for index, request in enumerate(instance.requests):
        fitting = [pair for pair in request.waits if left[pair[0]] >= request.gpus]
        if index in begun or not fitting:
            continue
        release, _ = max(fitting, key=lambda pair: (pair[1], -pair[0]))
        left[release] -= request.gpus
        waits.append(Wait(index, release))
    return tuple(waits)
