"""Anything may happen in any order: what must hold then, checked on the facts alone."""

from __future__ import annotations

import pickle
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Pool
from shared.contracts.attempts import (
    AllocationReleased,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobRequeued,
    JobResized,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.job_spec import PRIORITY_CLASSES, JobSpec
from shared.contracts.nodes import CordonNode, DrainNode, NodeJoined, NodeLost, UncordonNode
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced, RoundEnded
from tests.harness.hash_seeds import printed_under_two_hash_seeds
from tests.services.placement.core.lane import (
    Lane,
    exited,
    job,
    kinds,
    left,
    ready,
    refused,
    registered,
    stopped,
)

ENDS = (JobSucceeded, JobFailed, JobCancelled)
NODES = {"n1": (4, "a100"), "n2": (4, "a100"), "n3": (8, "h100")}
SHAPES = st.tuples(st.sampled_from([0, 0.3, 0.5, 1, 2, 4, 8]), st.sampled_from([1, 1, 2, 3]))


TIME_SCALE, RESIDENCY_S, MARGIN = 10.0, 20.0, 1.0


def place_of(spec: JobSpec) -> int:
    return PRIORITY_CLASSES.index(spec.priority_class)


class Ledger:
    """An independent fold: who holds what, from the facts alone."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, str, tuple[int, ...], int]] = {}
        self.nodes: dict[str, int] = {}
        self.ends: Counter[str] = Counter()
        self.known: set[str] = set()
        self.specs: dict[str, JobSpec] = {}
        self.began: dict[str, int] = {}
        self.answers: Counter[str] = Counter()
        self.outranked = 0
        self.moved: Counter[str] = Counter()
        self.targets: dict[str, set[tuple[str, int]]] = {}
        """GPUs, whole ones, that are kept for a job until it waits again."""

    def add(self, place: str, event: Event, at: int) -> None:
        match event:
            case JobEnqueued(job_id=job_id, spec=spec):
                self.known.add(job_id)
                self.specs[job_id] = spec
            case JobStarted(job_id=job_id):
                self.began[job_id] = at
            case JobRequeued(job_id=job_id):
                self.began.pop(job_id, None)
                self.targets.pop(job_id, None)
            case JobMigrated() | JobResized():
                self.check_move(event, at)
            case JobPreempted() if event.by_job_id:
                self.check_preemption(event, at)
            case JobPlaced(job_id=job_id, allocations=allocations):
                self.check_gang(self.specs[job_id], len(allocations))
                for a in allocations:
                    assert a.node_id in self.nodes, "outside its node's life"
                    self.held[f"{place}/{a.rank}"] = (job_id, a.node_id, a.gpus, a.gpu_milli)
                self.check()
                self.check_kept(event)
            case AllocationReleased(allocation_id=allocation_id):
                del self.held[allocation_id]
            case NodeJoined(node_id=node_id, gpus=gpus):
                assert not any(node == node_id for _, node, _, _ in self.held.values())
                self.nodes[node_id] = gpus
            case NodeLost(node_id=node_id):
                self.nodes.pop(node_id, None)
            case CommandAccepted(command_id=id) | CommandRefused(command_id=id):
                self.answers[id] += 1
        if isinstance(event, ENDS):
            self.ends[event.job_id] += 1
            self.targets.pop(event.job_id, None)
            assert not any(owner == event.job_id for owner, *_ in self.held.values())

    def check_gang(self, spec: JobSpec, workers: int) -> None:
        if spec.elastic:
            assert spec.elastic.min_workers <= workers <= spec.elastic.max_workers
        else:
            assert workers == spec.gang.workers

    def check_preemption(self, event: JobPreempted, at: int) -> None:
        """Past the guarantee always; by rank only whom it leads, and who had its residency."""
        spec, by = self.specs[event.job_id], self.specs[event.by_job_id]
        ran_ms = at - self.began[event.job_id] if event.job_id in self.began else 0
        assert spec.preemptible or spec.spot
        assert not by.spot
        assert ran_ms >= spec.guaranteed_s * 1000 / TIME_SCALE
        if event.reason != "outranked":
            assert spec.spot or place_of(spec) > place_of(by)
            return
        self.outranked += 1
        assert place_of(spec) == place_of(by) and not spec.spot
        assert ran_ms >= RESIDENCY_S * 1000 / TIME_SCALE
        assert event.terms["by_score"] > event.terms.get("score", -1e9) + MARGIN

    def check_move(self, event: JobMigrated | JobResized, at: int) -> None:
        """Only an operator's drain stops one that is protected; no job has another's target."""
        spec, ran_ms = self.specs[event.job_id], at - self.began[event.job_id]
        self.check_gang(spec, len(event.target))
        if event.reason != "drain":
            assert spec.preemptible or spec.spot
            assert ran_ms >= max(spec.guaranteed_s, RESIDENCY_S) * 1000 / TIME_SCALE
        if isinstance(event, JobResized):
            grows = event.to_workers > event.from_workers
            assert (event.reason == "grow") == grows and grows == (not event.by_job_id)
            assert event.to_workers == len(event.target) != event.from_workers
        self.moved[event.reason] += 1
        mine = whole(event.target)
        assert not any(mine & theirs for theirs in self.targets.values())
        taken = {
            (node, gpu)
            for owner, node, gpus, milli in self.held.values()
            for gpu in gpus
            if owner != event.job_id and milli == GPU
        }
        assert not mine & taken
        self.targets[event.job_id] = mine

    def check_kept(self, event: JobPlaced) -> None:
        mine = whole(event.allocations)
        assert not any(mine & theirs for theirs in self.targets.values())

    def check(self) -> None:
        used: Counter[tuple[str, int]] = Counter()
        for _, node, gpus, milli in self.held.values():
            assert len(set(gpus)) == len(gpus)
            for gpu in gpus:
                used[node, gpu] += milli
                assert node not in self.nodes or gpu < self.nodes[node]
        assert all(milli <= 1000 for milli in used.values()), used


def whole(allocations: tuple[Allocation, ...]) -> set[tuple[str, int]]:
    return {(a.node_id, gpu) for a in allocations if a.gpu_milli == GPU for gpu in a.gpus}


class PoolMachine(RuleBasedStateMachine):
    """A pool with executors that say true things, late, twice, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.lane = Lane()
        self.ledger = Ledger()
        self.seen = 0
        self.jobs = 0
        self.born = Counter[str]()
        self.old: list[tuple[str, str]] = []

    @initialize(
        mode=st.sampled_from(["strict", "skip", "skip", "easy"]),
        preemption=st.sampled_from(["class", "ranked"]),
        settle_ms=st.sampled_from([0, 1, 30]),
    )
    def begin(self, mode: str, preemption: str, settle_ms: int) -> None:
        self.lane.pool(
            time_scale=TIME_SCALE,
            lease_s=5.0,
            start_timeout_s=10.0,
            queue_mode=mode,
            preemption=preemption,
            min_residency_s=RESIDENCY_S,
            preempt_margin=MARGIN,
            settle_ms=settle_ms,
        )
        for name in NODES:
            self.join(name)

    @rule(
        shape=SHAPES,
        tier=st.sampled_from(PRIORITY_CLASSES),
        spot=st.sampled_from([False, False, True]),
        preemptible=st.sampled_from([True, True, False]),
        guaranteed=st.sampled_from([0.0, 0.0, 20.0]),
        types=st.sampled_from([(), (), ("a100",), ("h100",)]),
        elastic=st.booleans(),
        walltime=st.sampled_from([None, 100_000.0]),
        retry=st.integers(1, 2),
        cpus=st.sampled_from([1, 1, 60]),
    )
    def submit(
        self,
        shape: tuple[float, int],
        tier: str,
        spot: bool,
        preemptible: bool,
        guaranteed: float,
        types: tuple[str, ...],
        elastic: bool,
        walltime: float | None,
        retry: int,
        cpus: int,
    ) -> None:
        self.jobs += 1
        more: dict[str, Any] = {"elastic": {"min_workers": 1, "max_workers": 3}}
        self.lane.submit(
            job(
                f"j{self.jobs}",
                *shape,
                at=self.lane.now,
                priority_class=tier,
                spot=spot,
                preemptible=preemptible,
                guaranteed_s=guaranteed,
                gpu_types=types,
                retry={"max_attempts": retry},
                cpus=cpus,
                walltime_s=walltime,
                checkpoint_interval_s=10.0,
                **(more if elastic else {}),
            )
        )

    def pick(self, n: int, *phases: str) -> Job | None:
        result = [j for j in self.lane.state.jobs.values() if not phases or j.phase in phases]
        return result[n % len(result)] if result else None

    @rule()
    def go(self) -> None:
        placed = [j.job_id for j in self.lane.state.jobs.values() if j.phase == "placed"]
        self.lane.ready(*placed)

    @rule()
    def stop_as_asked(self) -> None:
        stopping = [j.job_id for j in self.lane.state.jobs.values() if j.phase == "stopping"]
        self.lane.stopped(*stopping)

    @rule(n=st.integers(0, 50), part=st.booleans())
    def get_ready(self, n: int, part: bool) -> None:
        result = self.pick(n, "placed")
        if result:
            ids = self.lane.ids_of(result.job_id)
            self.lane.report(*(ready(i, result.job_id) for i in (ids[:1] if part else ids)))

    @rule(n=st.integers(0, 50), code=st.sampled_from([0, 0, 0, 1]), part=st.booleans())
    def exit(self, n: int, code: int, part: bool) -> None:
        result = self.pick(n, "running", "stopping", "placed")
        if result:
            ids = self.lane.ids_of(result.job_id)[: 1 if part else None]
            self.old += [(i, result.job_id) for i in ids]
            self.lane.report(*(exited(i, result.job_id, code) for i in ids))

    @rule(n=st.integers(0, 200))
    def lose_worker(self, n: int) -> None:
        result = self.pick(n, "running", "placed") if n < 50 else None
        if result:
            self.old += [(i, result.job_id) for i in self.lane.ids_of(result.job_id)]
            self.lane.stopped(result.job_id)

    @rule(n=st.integers(0, 200))
    def refuse(self, n: int) -> None:
        result = self.pick(n, "placed") if n < 50 else None
        if result:
            self.lane.report(refused(self.lane.ids_of(result.job_id)[0], result.job_id))

    @rule(n=st.integers(0, 50), code=st.integers(0, 1))
    def repeat(self, n: int, code: int) -> None:
        if self.old:
            i, job_id = self.old[n % len(self.old)]
            events = self.lane.report(exited(i, job_id, code), stopped(i, job_id), ready(i, job_id))
            assert not any(isinstance(e, (AllocationReleased, *ENDS)) for e in events)

    @rule(n=st.integers(0, 50))
    def cancel(self, n: int) -> None:
        result = self.pick(n)
        if result:
            self.lane.cancel(result.job_id)

    @rule(n=st.integers(0, 50), avoid=st.booleans())
    def readmit(self, n: int, avoid: bool) -> None:
        result = self.pick(n, "parked")
        if result:
            self.lane.readmit(result.job_id, result.attempt + 1, *(["n1"] if avoid else []))

    @rule(order=st.permutations([f"j{n}" for n in range(1, 8)]))
    def rank(self, order: list[str]) -> None:
        self.lane.rank(*order)

    @rule(n=st.integers(0, 99))
    def score(self, n: int) -> None:
        """Of all that wait and all that run, in no order that means anything."""
        draw = Random(n)
        state = self.lane.state
        scores = {name: float(draw.randint(0, 6)) for name in state.waiting}
        self.lane.score({name: float(draw.randint(0, 6)) for name in state.running}, **scores)

    @rule(name=st.sampled_from(sorted(NODES)), n=st.integers(0, 9))
    def join_again(self, name: str, n: int) -> None:
        node = self.lane.state.board.nodes.get(name)
        if node is None or node.lost_at is not None or n == 0:
            self.join(name)

    def join(self, name: str) -> None:
        self.born[name] += 1
        gpus, gpu_type = NODES[name]
        self.lane.report(
            registered(name, gpus, gpu_type=gpu_type, incarnation=f"i{self.born[name]}", cpus=64)
        )

    @rule(name=st.sampled_from(sorted(NODES)), silent=st.booleans(), n=st.integers(0, 3))
    def lose(self, name: str, silent: bool, n: int) -> None:
        if n or name not in self.lane.state.board.nodes:
            return
        if silent:
            self.lane.silent(name)
        else:
            self.lane.report(left(name, f"i{self.born[name]}"))

    @rule(
        name=st.sampled_from([*NODES, "n9"]),
        what=st.sampled_from([CordonNode, UncordonNode, UncordonNode, DrainNode]),
    )
    def operate(self, name: str, what: type[CordonNode]) -> None:
        command = what(node_id=name)
        id = f"c{self.lane.seq}"
        events = self.lane.command(command, id)
        assert kinds(events).count("CommandAccepted") + kinds(events).count("CommandRefused") == 1
        assert self.lane.command(command, id) == []

    @rule(ms=st.sampled_from([1, 50, 100, 1000, 6000, 60_000]))
    def wait(self, ms: int) -> None:
        """Sleep as the shell does: every due wake is served, and none is served for nothing."""
        end = self.lane.now + ms
        while (due := self.lane.decider.next_wake(self.lane.state)) is not None and due <= end:
            assert self.lane.wake() != [], "a wake without effect would come for ever"
        self.lane.now = end

    def facts_hold(self) -> None:
        for fact in self.lane.facts[self.seen :]:
            self.ledger.add(fact.place, fact.event, fact.at)
        self.seen = len(self.lane.facts)

    @invariant()
    def every_job_is_somewhere(self) -> None:
        self.facts_hold()
        state = self.lane.state
        for job_id in self.ledger.known:
            assert self.ledger.ends[job_id] == (job_id not in state.jobs)
        for each in state.jobs.values():
            assert (each.phase == "waiting") == (each.job_id in state.waiting)
            assert bool(each.allocations) == (each.phase in ("placed", "running", "stopping"))
        held = {i for each in state.jobs.values() for i in each.allocations}
        assert held == set(self.ledger.held)

    @invariant()
    def counts_are_right(self) -> None:
        state = self.lane.state
        newest = [j for j in state.waiting.values() if j.round_no == state.round_no]
        assert state.unscanned == len(newest)
        placed = [j.job_id for j in state.jobs.values() if j.phase == "placed"]
        assert sorted(state.starting) == sorted(placed)
        for node in state.board.nodes.values():
            assert all(0 <= milli <= 1000 for milli in node.free)
            assert node.whole == node.free.count(1000)
            assert node.cpu_free >= 0 and node.mem_free >= 0
            assert bool(node.jobs) or node.lost_at is None

    def teardown(self) -> None:
        """The same state from the facts alone, and the same facts from a snapshot."""
        self.facts_hold()
        assert set(self.ledger.answers.values()) <= {1}
        again = Pool(0)
        for fact in self.lane.facts:
            self.lane.decider.evolve(again, fact)
        assert again == self.lane.state
        assert pickle.loads(pickle.dumps(again)) == again
        assert_finishes(self.lane)


def assert_finishes(lane: Lane) -> None:
    """With all nodes in order and honest executors, every job comes to its end."""
    for n, (name, (gpus, gpu_type)) in enumerate(NODES.items()):
        lane.command(UncordonNode(node_id=name), f"last{n}")
        lane.report(registered(name, gpus, gpu_type=gpu_type, incarnation="i999999", cpus=64))
    for _ in range(400):
        for each in list(lane.state.jobs.values()):
            match each.phase:
                case "placed":
                    lane.ready(each.job_id)
                case "running":
                    lane.exited(each.job_id)
                case "stopping":
                    lane.stopped(each.job_id)
                case "parked":
                    lane.readmit(each.job_id, each.attempt + 1)
        lane.feed(after_ms=31_000)
        if all(j.hold_reason == "no_node_fits" for j in lane.state.jobs.values()):
            return
    raise AssertionError([(j.job_id, j.phase, j.hold_reason) for j in lane.state.jobs.values()])


PoolMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnyOrder = PoolMachine.TestCase

SIZES = [(0, 1), (0.3, 1), (0.5, 2), (1, 1), (2, 1), (4, 1), (1, 3), (4, 2), (8, 1)]


def one_step(day: PoolMachine, draw: Random) -> None:
    """More of what is common: hypothesis looks for corners, a day is mostly work."""
    node = draw.choice(sorted(NODES))
    match draw.choices(range(13), [25, 20, 15, 10, 1, 2, 2, 2, 3, 4, 4, 9, 8])[0]:
        case 0:
            day.submit(
                draw.choice(SIZES),
                draw.choice(PRIORITY_CLASSES),
                draw.random() < 0.2,
                draw.random() < 0.8,
                draw.choice([0.0, 0.0, 20.0]),
                draw.choice([(), (), ("a100",), ("h100",)]),
                draw.random() < 0.2,
                None,
                draw.randint(1, 2),
                draw.choice([1, 1, 1, 20]),
            )
        case 1:
            day.go()
        case 2:
            day.exit(draw.randrange(50), int(draw.random() < 0.2), draw.random() < 0.3)
        case 3:
            day.stop_as_asked()
        case 4:
            day.lose_worker(0)
        case 5:
            day.refuse(0)
        case 6:
            day.repeat(draw.randrange(50), draw.randint(0, 1))
        case 7:
            day.cancel(draw.randrange(50))
        case 8:
            day.readmit(draw.randrange(50), draw.random() < 0.5)
        case 9:
            day.lose(node, draw.random() < 0.5, draw.randrange(4))
            day.join_again(draw.choice(sorted(NODES)), draw.randrange(10))
        case 10:
            day.operate(node, draw.choice([CordonNode, DrainNode, UncordonNode, UncordonNode]))
        case 11:
            day.score(draw.randrange(100))
        case _:
            day.wait(draw.choice([1, 20, 100, 1000, 6000]))


@pytest.mark.parametrize(
    ("mode", "preemption"),
    [
        ("skip", "class"),
        ("skip", "ranked"),
        ("strict", "class"),
        ("easy", "class"),
        ("easy", "ranked"),
    ],
)
def test_a_busy_day_ends_well(mode: str, preemption: str) -> None:
    day, draw = PoolMachine(), Random(f"{mode} {preemption} 1")
    day.begin(mode, preemption, 1)
    for _ in range(500):
        one_step(day, draw)
        day.every_job_is_somewhere()
        day.counts_are_right()
    events = Counter(kinds([fact.event for fact in day.lane.facts]))
    assert events["JobSucceeded"] and events["JobPreempted"] and events["JobAttemptFailed"]
    assert (day.ledger.outranked > 0) is (preemption == "ranked")
    day.teardown()


def test_a_calm_day_moves_and_resizes_and_ends_well() -> None:
    """Few jobs, most of them elastic, long waits, and now and then a node that is drained."""
    day, draw = PoolMachine(), Random(2)
    day.begin("skip", "class", 1)
    for _ in range(250):
        calm_step(day, draw)
        day.every_job_is_somewhere()
        day.counts_are_right()
    assert {"grow", "shrink", "drain"} <= day.ledger.moved.keys()
    day.teardown()


def calm_step(day: PoolMachine, draw: Random) -> None:
    match draw.choices(range(6), [4, 20, 20, 6, 3, 25])[0]:
        case 0:
            tier, size = draw.choice(PRIORITY_CLASSES), draw.choice([(1, 1), (1, 2), (2, 1)])
            elastic = draw.random() < 0.7
            day.submit(size, tier, False, True, 0.0, (), elastic, 100_000.0, 1, 1)
        case 1:
            day.go()
        case 2:
            day.stop_as_asked()
        case 3:
            day.exit(draw.randrange(50), 0, False)
        case 4:
            day.operate(draw.choice(sorted(NODES)), draw.choice([DrainNode, UncordonNode]))
        case _:
            day.wait(draw.choice([100, 1000, 6000]))


STORY = """
import hashlib
from tests.services.placement.core.test_decide import story
print(hashlib.sha256(repr(story()).encode()).hexdigest())
"""


def story() -> list[Event]:
    """A fixed course of everything: contended, with spot, preemption, shares and a lost node."""
    lane = Lane()
    lane.pool(time_scale=10.0)
    for name, (gpus, gpu_type) in NODES.items():
        lane.report(registered(name, gpus, gpu_type=gpu_type, labels={"rack": "r1", "net": "ib"}))
    for n in range(40):
        tier = PRIORITY_CLASSES[n % 4]
        workers = 1 + n % 3
        size = (0.5, 1, 2, 4)[n % 4]
        selector = {"net": "ib", "rack": "r1"} if n % 2 else {}
        spec = {"priority_class": tier, "spot": n % 5 == 0, "node_selector": selector}
        lane.submit(job(f"j{n}", size, workers, at=lane.now, **spec), after_ms=40)
        for each in list(lane.state.jobs.values()):
            if each.phase == "placed":
                lane.ready(each.job_id)
            elif each.phase == "stopping" or n % 7 == 0:
                lane.stopped(each.job_id)
        if n == 20:
            lane.silent("n1")
    return [fact.event for fact in lane.facts]


@pytest.mark.process
def test_two_hash_seeds_give_the_same_decisions() -> None:
    first, second = printed_under_two_hash_seeds(STORY)
    assert first == second
    assert any(isinstance(event, RoundEnded) for event in story())
