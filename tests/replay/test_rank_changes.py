"""A pool that records rankings as changes decides and stores what one with whole rankings does."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.placement import RanksChanged, RanksNoted
from shared.contracts.ranking import QueueRanked
from shared.contracts.reranking import QueueReranked
from shared.ledger.decider import Decider, Fact
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.projections.ledger_events import LedgerEvent, decode_events
from shared.projections.queue import QueueRankRow, fold_order
from simulator.engine.failures import NodeFailure
from simulator.engine.lane import LANE
from simulator.engine.models import load_models
from simulator.engine.run import schedule_actions
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.engine.world import World
from simulator.workload.rows import WorkloadJob
from tests.harness.ledger import accepted

SHAPES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (2, 4))
JOBS = 40
RANKINGS = (QueueRanked.TYPE, QueueReranked.TYPE)
UNLIKE = (RanksNoted.TYPE, RanksChanged.TYPE, "pool.configured.v1")
"""Events that differ: a whole order without a rank of use is not noted, its changes are."""
PLACE = re.compile(r"\b\d+/\d+/\d+\b")
CACHES = ("order_cache", "running_order")
SETTINGS: dict[str, dict[str, Any]] = {
    "gittins, ranked": {"base_policy": "gittins", "preemption": "ranked"},
    "fair share": {"base_policy": "fair_share"},
    "las, ranked": {"base_policy": "las", "preemption": "ranked"},
    "unicep by history, easy": {"base_policy": "unicep", "queue_mode": "easy"},
    "sjf by history, easy": {"base_policy": "sjf", "queue_mode": "easy", "rank_ms": 300},
    "floor": {"base_policy": "srsf", "preemption": "ranked", "tenant_floor": 0.4},
    "learned": {"base_policy": "srsf", "preemption": "ranked", "learned": "berth-preempt"},
}


def workload(seed: int) -> list[WorkloadJob]:
    draws, at = random.Random(seed), 0.0
    jobs = []
    for number in range(JOBS):
        at += round(draws.expovariate(1 / 20), 3)
        workers, gpus = draws.choice(SHAPES)
        run_s = min(max(round(draws.lognormvariate(4.0, 1.2), 3), 0.05), 900.0)
        owner, name = f"t{draws.randrange(3)}", f"n{draws.randrange(4)}"
        jobs.append(
            WorkloadJob(
                f"k{number:03d}",
                owner,
                "u",
                name,
                at,
                run_s,
                workers,
                float(gpus),
                None,
                1,
                1,
                None,
            )
        )
    return jobs


def world_of(jobs: list[WorkloadJob], settings: dict[str, Any], changes: bool) -> World:
    """Play the jobs and a failure of a node to the end; whatever is decided goes to the ledgers."""
    pool = simulated_pool(time_scale=10.0, guard_predictions=True, **settings)
    pool = pool.model_copy(update={"rank_changes": changes})
    nodes = equal_nodes(3, pool=POOL)
    scenario = Scenario(
        jobs=jobs,
        nodes=nodes,
        pool=pool,
        window_s=window_of(jobs, 1.0),
        walltime="oracle",
        checkpoint_s=30.0,
        restart_s=5.0,
        failures=(NodeFailure(min(nodes), 200.0, 260.0),),
    )
    tenants = sorted({job.tenant for job in jobs})
    world = World(pool, tenants, nodes, ledgers=True, models=load_models(pool))
    agenda = schedule_actions(scenario)
    while agenda.entries:
        at, action = agenda.pop()
        world.run(at)
        action(world)
    world.settle()
    for _ in range(4000):
        due = world.due()
        if due is None or not world.lanes["placement"].state.jobs:
            break
        world.run(max(due, world.now + 1))
    return world


def records(broker: MemoryBroker, ledger: str) -> list[Accepted]:
    tp = TP(ledger, LANE)
    return accepted(tp, broker.entries(tp))


def facts_of(broker: MemoryBroker, ledger: str) -> list[Fact]:
    return [fact for record in records(broker, ledger) for fact in record.facts(own=True)]


def folded(decider: Decider[Any], facts: Iterable[Fact]) -> Any:
    state = decider.initial(LANE)
    for fact in facts:
        decider.evolve(state, fact)
    return state


def in_full(facts: list[Fact]) -> Iterator[Fact]:
    """Replace changes by the whole order that they lead to."""
    last: Any = None
    for fact in facts:
        event = fact.event
        match event:
            case QueueRanked() | RanksNoted():
                last = event
            case QueueReranked() | RanksChanged():
                event = last = merged(last, event)
        yield fact._replace(event=event)


def merged(
    last: QueueRanked | RanksNoted, changes: QueueReranked | RanksChanged
) -> QueueRanked | RanksNoted:
    """Return the whole order, by other means than the folds."""
    waiting = {job.job_id: job for job in last.ranked if job.job_id not in changes.left_ranked}
    running = {job.job_id: job for job in last.running if job.job_id not in changes.left_running}
    running |= {job.job_id: job for job in changes.running}
    fields: dict[str, Any] = {"running": tuple(running.values())}
    if isinstance(changes, RanksChanged):
        ranked = waiting | {job.job_id: job for job in changes.ranked}
        fields |= {"ranked": tuple(ranked.values()), "ranked_at": changes.ranked_at}
        return last.model_copy(update=fields)
    new = {place: job for place, job in zip(changes.places, changes.ranked, strict=True)}
    stay = iter([j for j in waiting.values() if j.job_id not in {n.job_id for n in new.values()}])
    size = len({*waiting, *(job.job_id for job in new.values())})
    order = [new[place] if place in new else next(stay) for place in range(size)]
    assert isinstance(last, QueueRanked)
    terms = {k: v for k, v in last.terms.items() if k not in changes.left_terms} | changes.terms
    fields |= {"ranked": tuple(order), "terms": terms, "context": changes.context}
    return last.model_copy(update=fields | {"waiting": changes.waiting})


def decided(broker: MemoryBroker, ledger: str) -> list[tuple[str, int, str]]:
    """Return all decisions without places in the ledger; of rankings only that there were some."""
    events = (e for e in decode_events(records(broker, ledger)) if e.type not in UNLIKE)
    return [
        ("ranking", e.at, "")
        if e.type in RANKINGS
        else (e.type, e.at, PLACE.sub("", e.raw.decode()))
        for e in events
    ]


def row_of(events: list[LedgerEvent]) -> QueueRankRow:
    row = QueueRankRow("0", LANE)
    for event in events:
        if event.type in RANKINGS:
            fold_order(row, event)
    row.terms = json.dumps(json.loads(row.terms), sort_keys=True)
    return row


def rows_of(broker: MemoryBroker) -> QueueRankRow:
    return row_of(decode_events(records(broker, "priority")))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("seed", range(2))
def test_changes_lead_to_the_decisions_and_states_of_whole_rankings(
    settings: dict[str, Any], seed: int
) -> None:
    jobs = workload(seed)
    changes, whole = (world_of(jobs, settings, is_on) for is_on in (True, False))
    assert decided(changes.broker, "priority") == decided(whole.broker, "priority")
    assert decided(changes.broker, "placement") == decided(whole.broker, "placement")
    assert rows_of(changes.broker) == rows_of(whole.broker)
    for decider in (Priority(), Placement()):
        facts = facts_of(changes.broker, decider.ledger)
        assert {type(fact.event) for fact in facts} & {QueueReranked, RanksChanged}
        state, expected = folded(decider, facts), folded(decider, in_full(facts))
        assert content(state) == content(expected)
        assert content(state) == content(changes.lanes[decider.ledger].state)


def content(state: Any) -> dict[str, Any]:
    """Return the fields of a state; a whole order counts its rankings anew."""
    fields = {name: getattr(state, name) for name in state.__dataclass_fields__}
    for name in ("last_order", "named_order"):
        if fields.get(name):
            fields[name] = replace(fields[name], number=0)
    return {name: value for name, value in fields.items() if name not in CACHES}
