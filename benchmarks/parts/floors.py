"""Floors of a simulation: the least work that either engine could do."""

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
    """Return jobs per CPU-s of a heap of arrivals and ends in Python, without any queue."""
    began_s = time.process_time()
    heap = [(job.submit_s, True, number) for number, job in enumerate(jobs)]
    heapq.heapify(heap)
    while heap:
        at, arrives, number = heapq.heappop(heap)
        if arrives:
            heapq.heappush(heap, (at + jobs[number].duration_s, False, number))
    return per_s(len(jobs), began_s)


def fold_per_s(scenario: Scenario) -> float:
    """Return jobs per CPU-s when the facts of a simulation are only folded by the live `evolve`.

    Nothing is decided, encoded, delivered or ranked: every engine with this state pays that.
    """
    facts = facts_of(scenario)
    gc.collect()
    began_s = time.process_time()
    for decider in deciders():
        state = decider.initial(LANE)
        for fact in facts[decider.ledger]:
            decider.evolve(state, fact)
    return per_s(len(scenario.jobs), began_s)


def facts_of(scenario: Scenario) -> dict[str, list[Fact]]:
    """Return the facts of each ledger, as its own service reads them."""
    broker = simulate(scenario, ledgers=True).broker
    assert broker is not None, "simulate(ledgers=True) returns the broker"
    facts: dict[str, list[Fact]] = {}
    for ledger in (decider.ledger for decider in deciders()):
        reader = Reader(ledger, LANE)
        facts[ledger] = []
        for entry in broker.entries(TP(ledger, LANE)):
            accepted = reader.offer(entry.offset, entry.value)
            assert accepted is not None, "a simulation has one writer per ledger"
            facts[ledger] += accepted.facts(own=True)
    return facts


def per_s(jobs: int, began_s: float) -> float:
    return round(jobs / max(time.process_time() - began_s, 1e-9), 1)
