"""Requests of the instance: needs of the window's jobs and victims, their classes and worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from services.placement.core.pool.job import Job
from services.placement.core.round.view import View
from services.placement.core.solver.instance import GangRequest, Victim
from services.placement.core.solver.node_classes import NodeClasses
from services.placement.core.solver.objective import MIGRATION, STOP, size_milli, stop_price, weight
from services.placement.core.solver.places import workers_later, workers_now
from services.placement.core.solver.speeds import may_run_on, speed_on, spread_in
from services.placement.core.solver.window import Candidate, Window
from shared.contracts.gang_needs import GPU, Shape

HOMES = 32
"""Classes of nodes that one job chooses among."""
RESTART_S = 60.0
"""Cluster seconds that a stop costs beside lost work, if the job does not declare them."""


class ClassChoice(NamedTuple):
    """The classes where jobs that are alike may run."""

    speeds: dict[int, int]
    """Class -> thousandths of full speed."""
    best: frozenset[int]


@dataclass(slots=True)
class RequestBuilder:
    """Builds the requests of one instance."""

    view: View
    window: Window
    victims: Mapping[str, int]
    """Job id -> number of the victim."""
    nodes: NodeClasses
    places: dict[str, int] = field(init=False)
    choices: dict[object, ClassChoice] = field(default_factory=dict)
    """By everything in which candidates differ: most are alike."""

    def __post_init__(self) -> None:
        self.places = self.window.places()

    def request(self, candidate: Candidate) -> GangRequest:
        numbers = self.victims
        victims = tuple(numbers[j.job_id] for j in candidate.victims if j.job_id in numbers)
        shape = candidate.shape
        per_gpu = weight(self.places[candidate.job.job_id])
        worker = size_milli(shape.gpus, shape.milli)
        request = plain_request(candidate.job, shape)
        value = per_gpu * worker * shape.min_workers // GPU
        choice = self.choice(candidate, request, bool(victims))
        classes = sorted(choice.best | (self.used_by(candidate.job) & choice.speeds.keys()))
        return replace(
            request,
            classes=tuple(classes),
            speeds=tuple(choice.speeds[index] for index in classes),
            position=candidate.position,
            value=value + self.due(candidate),
            extra=per_gpu * worker // (2 * GPU),
            victims=victims,
            spread=spread_in(self.view.board, candidate.job, shape),
        )

    def due(self, candidate: Candidate) -> int:
        """Return the price of lower-class victims: it decides which stop, not whether."""
        lower = (job for job in candidate.victims if job.tier > candidate.job.tier)
        return sum(self.price(job) for job in lower)

    def choice(self, candidate: Candidate, request: GangRequest, later: bool) -> ClassChoice:
        """Return the classes for a candidate.

        Of very many kinds of nodes the fastest and tightest; for a gang also the largest classes.
        Those of greedy's plan are added by the caller.
        """
        speeds = candidate.job.spec.gpu_speeds or {}
        key = (candidate.shape, candidate.avoid, tuple(sorted(speeds.items())), later)
        if key not in self.choices:
            homes = dict(self.homes(candidate, request, later))
            self.choices[key] = ClassChoice(homes, self.best(request, homes))
        return self.choices[key]

    def homes(
        self, candidate: Candidate, request: GangRequest, later: bool
    ) -> Iterator[tuple[int, int]]:
        """Yield the classes where it may run, with its speed there."""
        workers = workers_later if later else workers_now
        pairs = zip(self.nodes.classes, self.nodes.nodes, strict=True)
        for index, (cls, node) in enumerate(pairs):
            suited = node.node_id not in candidate.avoid and may_run_on(candidate.shape, node)
            if suited and workers(cls, request):
                yield index, speed_on(self.view.board, candidate.job, node)

    def best(self, request: GangRequest, speeds: Mapping[int, int]) -> frozenset[int]:
        if len(speeds) <= HOMES:
            return frozenset(speeds)
        classes = self.nodes.classes
        tight = sorted((-speed, classes[at].whole, at) for at, speed in speeds.items())
        best = {at for *_, at in tight[: HOMES // 2]}
        if request.max_workers > 1:
            wide = sorted(
                (-len(classes[at].nodes) * workers_now(classes[at], request), at) for at in speeds
            )
            best.update(at for _, at in wide[: HOMES // 2])
        return frozenset(best)

    def used_by(self, job: Job) -> set[int]:
        """Return the classes of the nodes where greedy would start it."""
        assignment = self.window.placed.get(job.job_id)
        names = {slot.node_id for slot in assignment.slots} if assignment else set()
        return {self.nodes.class_of[name] for name in names if name in self.nodes.class_of}

    def victim(self, job: Job) -> Victim:
        shape = job.shape._replace(
            min_workers=len(job.allocations), max_workers=len(job.allocations)
        )
        request = plain_request(job, shape)
        migrations = job.phase == "running" and job.spec.preemptible
        candidate = Candidate(job, shape, job.avoid, 0)
        classes = tuple(sorted(self.choice(candidate, request, False).best)) if migrations else ()
        request = replace(request, classes=classes, speeds=(GPU,) * len(classes))
        return Victim(job.job_id, job.attempt, self.price(job), self.price(job, MIGRATION), request)

    def price(self, job: Job, per_gpu: int = STOP) -> int:
        """Return the price of a stop, or with `MIGRATION` of a migration."""
        restart_s = job.restart_s(self.view.time_scale)
        if job.spec.simulated is None and not job.has_shown_restart:
            restart_s = restart_s or RESTART_S
        size = round(job.gpus * GPU)
        lost_s = self.view.lost_work_s(job) + restart_s
        return per_gpu * size // GPU + stop_price(size, lost_s)


def plain_request(job: Job, shape: Shape) -> GangRequest:
    return GangRequest(
        job.job_id,
        job.attempt,
        shape.gpus,
        shape.milli,
        shape.cpu_milli,
        shape.mem_mib,
        shape.min_workers,
        shape.max_workers,
        (),
        (),
        0,
        0,
    )
