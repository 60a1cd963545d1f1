"""Builds the instance of a round from a view: requests, free capacity and victims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.board import Node, matches
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU, Shape
from services.placement.core.round.fit import place
from services.placement.core.round.greedy import plan as greedy_plan
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View
from services.placement.core.solver.instance import (
    Fixed,
    FreeNode,
    GangRequest,
    Instance,
    NextWorker,
    NodeClass,
    Reservation,
    RoundPlan,
    Start,
    Victim,
    VictimShare,
)
from services.placement.core.solver.objective import MIGRATION, STOP, size_milli, stop_price, weight
from services.placement.core.solver.places import workers_later, workers_now
from services.placement.core.solver.window import VICTIMS, Candidate, Window, is_whole

HOMES = 32
"""Classes of nodes that one job chooses among."""
RESTART_S = 60.0
"""Cluster seconds that a stop costs beside lost work, if the job does not declare them."""


def instance_of(view: View, greedy: Plan | None = None) -> Instance:
    """Return the instance of a view; `greedy`: greedy's plan of it, if it is known already."""
    with Draft(view.board) as draft:
        greedy_plan_of_view = greedy or greedy_plan(view)
        window = Window(
            view,
            draft,
            {assignment.job.job_id: assignment for assignment in greedy_plan_of_view.assignments},
        )
        window.look()
        return Export(view, draft, window, greedy_plan_of_view).instance()


class ClassChoice(NamedTuple):
    """The classes where jobs that are alike may run."""

    speeds: dict[int, int]
    """Class -> thousandths of full speed."""
    best: frozenset[int]


@dataclass(slots=True)
class Export:
    """Builds one instance."""

    view: View
    draft: Draft
    window: Window
    greedy: Plan
    victims: dict[str, Job] = field(default_factory=dict)
    victim_shares: dict[str, list[VictimShare]] = field(default_factory=dict)
    """Node id -> the shares of victims there."""
    classes: list[NodeClass] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    """One node of each class."""
    where: dict[str, int] = field(default_factory=dict)
    """Node id -> class."""
    full: int = 0
    without_gpus: bool = False
    """Some candidate needs cores and memory alone."""
    choices: dict[object, ClassChoice] = field(default_factory=dict)
    """By everything in which candidates differ: most are alike."""
    places: dict[str, int] = field(default_factory=dict)

    def instance(self) -> Instance:
        self.places = self.window.places()
        self.note_victims()
        self.group()
        requests = tuple(self.request(candidate) for candidate in self.window.candidates)
        victims = tuple(self.victim(job) for job in self.victims.values())
        plan = self.hint()
        if not self.window.fixed:
            requests = require_first(requests, plan)
        return Instance(
            tuple(self.classes),
            requests,
            victims,
            self.room(),
            self.full,
            plan,
            tuple(
                Fixed(job.job_id, job.attempt, position, tuple(assignment.slots))
                for position, job, assignment in self.window.fixed
            ),
        )

    def room(self) -> NextWorker:
        shape = self.window.blocked
        return NextWorker(shape.gpus, shape.cpu_milli, shape.mem_mib) if shape else NextWorker()

    def note_victims(self) -> None:
        chosen = [e.job for e in self.greedy.evictions if is_whole(e.job)]
        offered = [job for candidate in self.window.candidates for job in candidate.victims]
        if any(candidate.victims for candidate in self.window.candidates):
            for job in [*chosen, *offered]:
                if len(self.victims) < VICTIMS:
                    self.victims.setdefault(job.job_id, job)
        for index, job in enumerate(self.victims.values()):
            parts: dict[str, list[int]] = {}
            for slot in slots_of(job):
                part = parts.setdefault(slot.node_id, [0, 0, 0])
                part[0] += len(slot.gpus)
                part[1] += slot.cpu_milli
                part[2] += slot.mem_mib
            for name, (gpus, cpu, mem) in parts.items():
                self.victim_shares.setdefault(name, []).append(VictimShare(index, gpus, cpu, mem))

    def group(self) -> None:
        """Group nodes that every job of the window treats alike into classes, in order of name."""
        features = self.features()
        self.without_gpus = any(not candidate.shape.gpus for candidate in self.window.candidates)
        groups: dict[NodeFeatures, list[Node]] = {}
        for name in sorted(self.view.board.nodes):
            node = self.view.board.nodes[name]
            if not node.indexed:
                continue
            if self.has_room(node):
                groups.setdefault(features(node), []).append(node)
            else:
                self.full += 1
        racks: dict[str, int] = {}
        for number, (key, nodes) in enumerate(groups.items()):
            self.where.update((node.node_id, number) for node in nodes)
            self.classes.append(node_class(key, nodes, racks.setdefault(key.rack, len(racks))))
            self.nodes.append(nodes[0])

    def features(self) -> Callable[[Node], NodeFeatures]:
        cpu, mem = self.most_cpu_mem()
        labelled = any(candidate.shape.selector for candidate in self.window.candidates)
        avoided_by: dict[str, list[int]] = {}
        for index, candidate in enumerate(self.window.candidates):
            for name in candidate.avoid:
                avoided_by.setdefault(name, []).append(index)

        def of(node: Node) -> NodeFeatures:
            return NodeFeatures(
                node.kind.gpu_type,
                node.kind.gpus,
                node.whole,
                tuple(sorted(milli for milli in node.free if 0 < milli < GPU)),
                min(node.cpu_free, cpu.on(node)),
                min(node.mem_free, mem.on(node)),
                node.rack,
                self.view.board.health(node.node_id),
                tuple(self.victim_shares.get(node.node_id, ())),
                tuple(avoided_by.get(node.node_id, ())),
                node.kind.labels if labelled else (),
            )

        return of

    def has_room(self, node: Node) -> bool:
        return node.node_id in self.victim_shares or any(node.free) or self.without_gpus

    def most_cpu_mem(self) -> tuple[ResourceBound, ResourceBound]:
        """Return the cores and memory beyond which more of them make no difference on a node."""
        shapes = [candidate.shape for candidate in self.window.candidates]
        shapes += [candidate for candidate in (self.window.blocked,) if candidate]
        if any(not shape.gpus for shape in shapes):
            return ResourceBound(0, 0, True), ResourceBound(0, 0, True)
        needs = [(shape.cpu_milli, shape.mem_mib, shape.worker_milli) for shape in shapes]
        room = self.room()
        cpu = max((-(-cpu * GPU // milli) for cpu, _, milli in needs), default=0)
        mem = max((-(-mem * GPU // milli) for _, mem, milli in needs), default=0)
        return ResourceBound(cpu, room.cpu_milli), ResourceBound(mem, room.mem_mib)

    def request(self, candidate: Candidate) -> GangRequest:
        numbers = {job_id: index for index, job_id in enumerate(self.victims)}
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
        for index, (cls, node) in enumerate(zip(self.classes, self.nodes, strict=True)):
            suited = node.node_id not in candidate.avoid and may_run_on(candidate.shape, node)
            if suited and workers(cls, request):
                yield index, self.speed(candidate.job, node)

    def best(self, request: GangRequest, speeds: Mapping[int, int]) -> frozenset[int]:
        if len(speeds) <= HOMES:
            return frozenset(speeds)
        tight = sorted((-speed, self.classes[at].whole, at) for at, speed in speeds.items())
        best = {at for *_, at in tight[: HOMES // 2]}
        if request.max_workers > 1:
            wide = sorted(
                (-len(self.classes[at].nodes) * workers_now(self.classes[at], request), at)
                for at in speeds
            )
            best.update(at for _, at in wide[: HOMES // 2])
        return frozenset(best)

    def used_by(self, job: Job) -> set[int]:
        """Return the classes of the nodes where greedy would start it."""
        assignment = self.window.placed.get(job.job_id)
        return {self.where[slot.node_id] for slot in assignment.slots} if assignment else set()

    def speed(self, job: Job, node: Node) -> int:
        """Return thousandths of the best speed that the job could have in this pool."""
        speeds = job.spec.gpu_speeds or {}
        types = {kind.gpu_type for kind in self.view.board.kinds}
        best = max((speeds.get(name, 1.0) for name in types), default=1.0)
        own = speeds.get(node.kind.gpu_type, 1.0) / best
        return max(1, round(GPU * own * self.view.board.health(node.node_id)))

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
        simulated = job.spec.simulated
        restart_s = simulated.restart_s if simulated else RESTART_S
        size = round(job.gpus * GPU)
        lost_s = self.view.lost_work_s(job) + restart_s
        return per_gpu * size // GPU + stop_price(size, lost_s)

    def hint(self) -> RoundPlan:
        """Return greedy's plan of the same view, as far as it is about jobs of the window."""
        number = {
            candidate.job.job_id: index for index, candidate in enumerate(self.window.candidates)
        }
        starts = [
            Start(number[assignment.job.job_id], tuple(assignment.slots))
            for assignment in self.greedy.assignments
            if assignment.job.job_id in number
        ]
        mark = len(self.draft.log)
        for start in starts:
            self.draft.take(start.slots)
        reservations, stops = self.reservations(number)
        self.draft.rollback(mark)
        return RoundPlan(tuple(starts), tuple(reservations), tuple(stops))

    def reservations(self, number: Mapping[str, int]) -> tuple[list[Reservation], list[int]]:
        """Return the reservations of jobs that stop others in greedy's plan, and their victims."""
        index = {job_id: at for at, job_id in enumerate(self.victims)}
        by: dict[str, list[Job]] = {}
        for eviction in self.greedy.evictions:
            by.setdefault(eviction.by.job_id, []).append(eviction.job)
        reservations: list[Reservation] = []
        stops: list[int] = []
        for job_id, victims in by.items():
            candidate = self.window.candidates[number[job_id]] if job_id in number else None
            if candidate is None or not may_stop(candidate, victims, index):
                continue
            for job in victims:
                self.draft.give(slots_of(job))
            shape = candidate.shape._replace(max_workers=candidate.shape.min_workers)
            slots = place(self.draft, shape, candidate.avoid)
            if slots:
                reservations.append(
                    Reservation(number[job_id], count_by_node(slot.node_id for slot in slots))
                )
                stops += [index[job.job_id] for job in victims]
        return reservations, stops


class NodeFeatures(NamedTuple):
    """The features of a node by which jobs of the window could differ."""

    gpu_type: str
    gpus: int
    whole: int
    partial: tuple[int, ...]
    cpu_milli: int
    mem_mib: int
    rack: str
    health: float
    victim_shares: tuple[VictimShare, ...]
    avoided_by: tuple[int, ...]
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ResourceBound:
    """The most of a resource that jobs of the window could use on a node."""

    per_gpu: int
    more: int
    is_open: bool = False

    def on(self, node: Node) -> int:
        return 1 << 60 if self.is_open else self.per_gpu * node.kind.gpus + self.more


def may_stop(candidate: Candidate, victims: Iterable[Job], known: Mapping[str, int]) -> bool:
    offered = {job.job_id for job in candidate.victims if job.job_id in known}
    return all(job.job_id in offered for job in victims)


def may_run_on(shape: Shape, node: Node) -> bool:
    """Whether GPU type and labels of the node are as requested."""
    typed = not shape.types or node.kind.gpu_type in shape.types
    return typed and matches(shape, node.labels)


def node_class(features: NodeFeatures, nodes: list[Node], rack: int) -> NodeClass:
    return NodeClass(
        features.gpus,
        features.whole,
        features.partial,
        features.cpu_milli,
        features.mem_mib,
        rack,
        tuple(FreeNode(node.node_id, tuple(node.free)) for node in nodes),
        features.victim_shares,
    )


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


def require_first(requests: tuple[GangRequest, ...], plan: RoundPlan) -> tuple[GangRequest, ...]:
    """Require the start of the first job if it fits: the head of the queue is not passed over."""
    if not requests or requests[0].victims or all(start.request for start in plan.starts):
        return requests
    return (replace(requests[0], must_start=True), *requests[1:])


def count_by_node(names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(names).items())
