"""From a view to the instance that the solver is given: who waits, what is free, who may stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from services.placement.core.board import Board, Draft, Node, matches
from services.placement.core.fit import Avoid, Failures, could_hold, place
from services.placement.core.greedy import GREEDY
from services.placement.core.greedy import plan as greedy_plan
from services.placement.core.instance import (
    Claim,
    FreeNode,
    Held,
    Instance,
    NodeClass,
    Room,
    RoundPlan,
    Start,
    Victim,
    Wish,
)
from services.placement.core.objective import CLASS_GAP, MOVE, STOP, size_milli, stop_price, weight
from services.placement.core.places import workers_later, workers_now
from services.placement.core.preempt import slots_of
from services.placement.core.reserve import claim
from services.placement.core.shape import GPU, Shape
from services.placement.core.state import Job
from services.placement.core.view import Plan, View

WINDOW = 64
"""Jobs that fit now, best first, which the solver weighs against each other."""
LOOK = 512
"""Jobs in line that are looked at for them."""
CLAIMERS = 8
"""Jobs that do not fit and may make others stop: as many as greedy serves in one round."""
VICTIMS = 32
RESTART_S = 60.0
"""Cluster seconds that a stop costs beside lost work, where nobody knows better."""


def instance_of(view: View, greedy: Plan | None = None) -> Instance:
    """`greedy` is greedy's plan of this very view, if it is known already."""
    draft = Draft(view.board)
    try:
        line = Line(view, draft)
        line.walk()
        return Export(view, draft, line, greedy or greedy_plan(view)).instance()
    finally:
        draft.rollback()


@dataclass(frozen=True, slots=True)
class Asking:
    """A job in the window."""

    job: Job
    shape: Shape
    avoid: Avoid
    position: int
    """In line."""
    place: int
    """Among those of the window, each class after a gap: its weight."""
    victims: tuple[Job, ...] = ()


@dataclass(slots=True)
class Line:
    """The line from its head, as far as the window goes."""

    view: View
    draft: Draft
    asking: list[Asking] = field(default_factory=list)
    blocked: Shape | None = None
    """Of the first job that does not fit."""
    fits: dict[tuple[Shape, Avoid], bool] = field(default_factory=dict)
    failures: Failures = field(default_factory=Failures)

    def walk(self) -> None:
        places = claimers = 0
        first: int | None = None
        for position, job in enumerate(islice(GREEDY.rank(self.view), LOOK)):
            if job.not_before > self.view.now or places == WINDOW:
                continue
            gap = 0
            if job.job_id not in self.view.claims:
                first = job.tier if first is None else first
                gap = CLASS_GAP * (job.tier - first)
            found = self.look(job, position, places + gap, claimers < CLAIMERS)
            if found is not None:
                self.asking.append(found)
                claimers += bool(found.victims)
                places += not found.victims

    def look(self, job: Job, position: int, where: int, may_claim: bool) -> Asking | None:
        shape = GREEDY.allot(self.view, job)
        avoid = avoided(self.view.board, job, shape)
        if self.fit(shape, avoid):
            return Asking(job, shape, avoid, position, where)
        self.blocked = self.blocked or shape
        if job.job_id in self.view.claims:
            claim(self.view, self.draft, job, shape)
            self.fits.clear()
        elif may_claim and shape.gpus and not shape.is_share and self.view.victims.any_for(job):
            victims = tuple(filter(is_whole, self.view.victims.of(job)[:VICTIMS]))
            return Asking(job, shape, avoid, position, where, victims) if victims else None
        return None

    def fit(self, shape: Shape, avoid: Avoid) -> bool:
        """The job alone would fit on what is free."""
        key = (shape, avoid)
        if key not in self.fits:
            self.fits[key] = not self.failures.covers(shape, avoid) and self.try_place(shape, avoid)
        return self.fits[key]

    def try_place(self, shape: Shape, avoid: Avoid) -> bool:
        mark = len(self.draft.log)
        fits = bool(place(self.draft, shape, avoid))
        self.draft.rollback(mark)
        if not fits:
            self.failures.add(shape, avoid)
        return fits


def avoided(board: Board, job: Job, shape: Shape) -> Avoid:
    """As greedy: nodes that failed it are left out as long as the others could ever do."""
    if job.avoid and could_hold(board, shape, job.avoid) >= shape.min_workers:
        return job.avoid
    return ()


def is_whole(job: Job) -> bool:
    """Only jobs with whole GPUs give anything back that a claim could count on."""
    return all(lease.slot.milli == GPU for lease in job.leases.values())


@dataclass(slots=True)
class Export:
    """The working memory of one instance."""

    view: View
    draft: Draft
    line: Line
    greedy: Plan
    victims: dict[str, Job] = field(default_factory=dict)
    holds: dict[str, list[Held]] = field(default_factory=dict)
    """Node id -> what victims hold there."""
    classes: list[NodeClass] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    """One node of each class."""
    full: int = 0

    def instance(self) -> Instance:
        self.note_victims()
        self.group()
        wishes = tuple(self.wish(asking) for asking in self.line.asking)
        victims = tuple(self.victim(job) for job in self.victims.values())
        plan = self.hint()
        return Instance(
            tuple(self.classes),
            first_of_line(wishes, plan),
            victims,
            self.room(),
            self.full,
            plan,
        )

    def room(self) -> Room:
        shape = self.line.blocked
        return Room(shape.gpus, shape.cpu_milli, shape.mem_mib) if shape else Room()

    def note_victims(self) -> None:
        chosen = [each.job for each in self.greedy.evictions if is_whole(each.job)]
        offered = [job for asking in self.line.asking for job in asking.victims]
        if any(asking.victims for asking in self.line.asking):
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
                self.holds.setdefault(name, []).append(Held(index, gpus, cpu, mem))

    # ---- nodes --------------------------------------------------------------------------------

    def group(self) -> None:
        """Nodes that no job of the window can tell apart are one class, in order of name."""
        kin = self.kin()
        groups: dict[Kin, list[Node]] = {}
        for name in sorted(self.view.board.nodes):
            node = self.view.board.nodes[name]
            if not node.indexed:
                continue
            if self.has_room(node):
                groups.setdefault(kin(node), []).append(node)
            else:
                self.full += 1
        racks: dict[str, int] = {}
        for key, nodes in groups.items():
            self.classes.append(class_of(key, nodes, racks.setdefault(key.rack, len(racks))))
            self.nodes.append(nodes[0])

    def kin(self) -> Callable[[Node], Kin]:
        cpu, mem = self.most_cpu_mem()
        labelled = any(asking.shape.selector for asking in self.line.asking)
        shunned: dict[str, list[int]] = {}
        for index, asking in enumerate(self.line.asking):
            for name in asking.avoid:
                shunned.setdefault(name, []).append(index)

        def of(node: Node) -> Kin:
            return Kin(
                node.kind.gpu_type,
                node.kind.gpus,
                node.whole,
                tuple(sorted(milli for milli in node.free if 0 < milli < GPU)),
                min(node.cpu_free, cpu.on(node)),
                min(node.mem_free, mem.on(node)),
                node.rack,
                self.view.board.health(node.node_id),
                tuple(self.holds.get(node.node_id, ())),
                tuple(shunned.get(node.node_id, ())),
                node.kind.labels if labelled else (),
            )

        return of

    def has_room(self, node: Node) -> bool:
        if node.node_id in self.holds or any(node.free):
            return True
        return any(not asking.shape.gpus for asking in self.line.asking)

    def most_cpu_mem(self) -> tuple[Bound, Bound]:
        """Beyond what the node's GPUs could ever need, cores and memory make no difference."""
        shapes = [asking.shape for asking in self.line.asking]
        shapes += [asking for asking in (self.line.blocked,) if asking]
        if any(not shape.gpus for shape in shapes):
            return Bound(0, 0, True), Bound(0, 0, True)
        needs = [(shape.cpu_milli, shape.mem_mib, shape.worker_milli) for shape in shapes]
        room = self.room()
        cpu = max((-(-cpu * GPU // milli) for cpu, _, milli in needs), default=0)
        mem = max((-(-mem * GPU // milli) for _, mem, milli in needs), default=0)
        return Bound(cpu, room.cpu_milli), Bound(mem, room.mem_mib)

    # ---- jobs ---------------------------------------------------------------------------------

    def wish(self, asking: Asking) -> Wish:
        numbers = {job_id: index for index, job_id in enumerate(self.victims)}
        victims = tuple(numbers[j.job_id] for j in asking.victims if j.job_id in numbers)
        shape = asking.shape
        per_gpu = weight(asking.place)
        worker = size_milli(shape.gpus, shape.milli)
        wish = plain_wish(asking.job, shape)
        value = per_gpu * worker * shape.min_workers // GPU
        classes = list(self.homes(asking, wish, bool(victims)))
        return replace(
            wish,
            classes=tuple(classes),
            speeds=tuple(self.speed(asking.job, self.nodes[index]) for index in classes),
            position=asking.position,
            value=value + self.due(asking),
            extra=per_gpu * worker // (2 * GPU),
            victims=victims,
        )

    def due(self, asking: Asking) -> int:
        """A higher class is served whatever its victims lose; the price says only which."""
        lower = (job for job in asking.victims if job.tier > asking.job.tier)
        return sum(self.price(job) for job in lower)

    def homes(self, asking: Asking, wish: Wish, later: bool) -> Iterator[int]:
        for index, (cls, node) in enumerate(zip(self.classes, self.nodes, strict=True)):
            workers = workers_later(cls, wish) if later else workers_now(cls, wish)
            if workers and node.node_id not in asking.avoid and suits(asking.shape, node):
                yield index

    def speed(self, job: Job, node: Node) -> int:
        """Thousandths of the best that the job could have in this pool, at full health."""
        speeds = job.spec.gpu_speeds or {}
        types = {kind.gpu_type for kind in self.view.board.kinds}
        best = max((speeds.get(name, 1.0) for name in types), default=1.0)
        own = speeds.get(node.kind.gpu_type, 1.0) / best
        return max(1, round(GPU * own * self.view.board.health(node.node_id)))

    def victim(self, job: Job) -> Victim:
        shape = job.shape._replace(min_workers=len(job.leases), max_workers=len(job.leases))
        wish = plain_wish(job, shape)
        moves = job.phase == "running" and job.spec.preemptible
        asking = Asking(job, shape, job.avoid, 0, 0)
        classes = tuple(self.homes(asking, wish, False)) if moves else ()
        wish = replace(wish, classes=classes, speeds=(GPU,) * len(classes))
        return Victim(job.job_id, job.attempt, self.price(job), self.price(job, MOVE), wish)

    def price(self, job: Job, each: int = STOP) -> int:
        simulated = job.spec.simulated
        restart_s = simulated.restart_s if simulated else RESTART_S
        size = round(job.gpus * GPU)
        lost_s = self.view.victims.lost_work_s(job) + restart_s
        return each * size // GPU + stop_price(size, lost_s)

    # ---- greedy's plan ------------------------------------------------------------------------

    def hint(self) -> RoundPlan:
        """Greedy's plan of the same view, as far as it is about jobs of the window."""
        number = {asking.job.job_id: index for index, asking in enumerate(self.line.asking)}
        starts = [
            Start(number[placing.job.job_id], tuple(placing.slots))
            for placing in self.greedy.places
            if placing.job.job_id in number
        ]
        mark = len(self.draft.log)
        for start in starts:
            self.draft.take(start.slots)
        claims, stops = self.claims(number)
        self.draft.rollback(mark)
        return RoundPlan(tuple(starts), tuple(claims), tuple(stops))

    def claims(self, number: Mapping[str, int]) -> tuple[list[Claim], list[int]]:
        """Where those who make others stop would stand, if it can be said."""
        index = {job_id: at for at, job_id in enumerate(self.victims)}
        by: dict[str, list[Job]] = {}
        for eviction in self.greedy.evictions:
            by.setdefault(eviction.by.job_id, []).append(eviction.job)
        claims: list[Claim] = []
        stops: list[int] = []
        for job_id, victims in by.items():
            asked = self.line.asking[number[job_id]] if job_id in number else None
            if asked is None or not may_stop(asked, victims, index):
                continue
            for job in victims:
                self.draft.give(slots_of(job))
            shape = asked.shape._replace(max_workers=asked.shape.min_workers)
            slots = place(self.draft, shape, asked.avoid)
            if slots:
                claims.append(Claim(number[job_id], counted(slot.node_id for slot in slots)))
                stops += [index[job.job_id] for job in victims]
        return claims, stops


class Kin(NamedTuple):
    """What the jobs of the window could tell nodes apart by."""

    gpu_type: str
    gpus: int
    whole: int
    partial: tuple[int, ...]
    cpu_milli: int
    mem_mib: int
    rack: str
    health: float
    held: tuple[Held, ...]
    shunned: tuple[int, ...]
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The most of a resource that jobs of the window could use on a node."""

    per_gpu: int
    more: int
    is_open: bool = False

    def on(self, node: Node) -> int:
        return 1 << 60 if self.is_open else self.per_gpu * node.kind.gpus + self.more


def may_stop(asked: Asking, victims: Iterable[Job], known: Mapping[str, int]) -> bool:
    offered = {job.job_id for job in asked.victims if job.job_id in known}
    return all(job.job_id in offered for job in victims)


def suits(shape: Shape, node: Node) -> bool:
    typed = not shape.types or node.kind.gpu_type in shape.types
    return typed and matches(shape, node.labels)


def class_of(kin: Kin, nodes: list[Node], rack: int) -> NodeClass:
    return NodeClass(
        kin.gpus,
        kin.whole,
        kin.partial,
        kin.cpu_milli,
        kin.mem_mib,
        rack,
        tuple(FreeNode(node.node_id, tuple(node.free)) for node in nodes),
        kin.held,
    )


def plain_wish(job: Job, shape: Shape) -> Wish:
    return Wish(
        job.job_id, job.attempt, shape.gpus, shape.milli, shape.cpu_milli, shape.mem_mib,
        shape.min_workers, shape.max_workers, (), (), 0, 0,
    )  # fmt: skip


def first_of_line(wishes: tuple[Wish, ...], plan: RoundPlan) -> tuple[Wish, ...]:
    """Whoever is first and fits starts: nobody who gets to the head of the line is passed over."""
    if not wishes or wishes[0].victims or all(start.wish for start in plan.starts):
        return wishes
    return (replace(wishes[0], must=True), *wishes[1:])


def counted(names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return tuple(found.items())
