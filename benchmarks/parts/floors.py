"""What a simulation cannot do without: the least that either engine could take."""

from __future__ import annotations

import gc
import heapq
import time
from collections.abc import Sequence

from shared.ledger.decider import Fact
from shared.ledger.partition import TP
from shared.ledger.reader import Reader
from simulator.engine.lane import LANE
from simulator.engine.run import simulate
from simulator.engine.scenario import Scenario
from simulator.engine.world import deciders
from simulator.workload.rows import WorkloadJob


def heap_per_s(jobs: Sequence[WorkloadJob]) -> float:
    """Jobs per CPU-s of a heap of arrivals and ends in Python, each started when it comes: no
    queue at all."""
    began_s = time.process_time()
    heap = [(job.submit_s, True, number) for number, job in enumerate(jobs)]
    heapq.heapify(heap)
    while heap:
        at, arrives, number = heapq.heappop(heap)
        if arrives:
            heapq.heappush(heap, (at + jobs[number].duration_s, False, number))
    return per_s(len(jobs), began_s)


def fold_per_s(scenario: Scenario) -> float:
    """Jobs per CPU-s when the facts of a simulation are only folded, by the live `evolve`: nothing
    is decided, made, passed on or ranked. Whoever keeps this state by these facts pays that."""
    told = facts_of(scenario)
    gc.collect()
    began_s = time.process_time()
    for decider in deciders():
        state = decider.initial(LANE)
        for fact in told[decider.ledger]:
            decider.evolve(state, fact)
    return per_s(len(scenario.jobs), began_s)


def facts_of(scenario: Scenario) -> dict[str, list[Fact]]:
    """All that was said, by ledger, as its own service reads it."""
    broker = simulate(scenario, ledgers=True).broker
    assert broker is not None, "its ledgers were asked for"
    told: dict[str, list[Fact]] = {}
    for ledger in (decider.ledger for decider in deciders()):
        reader = Reader(ledger, LANE)
        facts = told[ledger] = []
        for entry in broker.entries(TP(ledger, LANE)):
            accepted = reader.offer(entry.offset, entry.value)
            assert accepted is not None, "a simulation has no rival"
            facts += accepted.facts(own=True)
    return told


def per_s(jobs: int, began_s: float) -> float:
    return round(jobs / max(time.process_time() - began_s, 1e-9), 1)
