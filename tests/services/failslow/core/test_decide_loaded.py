"""The detector on recorded trainings of four ranks (DDP over gloo) on a loaded host of two cores.

`recorded/*.json` were written by `python -m tests.services.failslow.record_run`: `loaded` has ten
busy processes beside it and no slow rank, `slow` has a rank that is stopped two thirds of the time
from the middle on. At these loads a rank waits for a processor in most of its own work.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.suspicion.evidence import Evidence
from shared.contracts.faults import FaultSuspected
from shared.contracts.reports import IterationTimes, TelemetryReported
from tests.harness.decider import an_input, given
from tests.services.failslow.gangs import POOL, gang, verdicts, watched

FOLDER = Path(__file__).parents[1] / "recorded"
REPORT_MS = 500
RANKS = 4


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return document


def row(rank: int, iterations: list[list[float]], *, with_delays: bool) -> IterationTimes:
    steps, own_s, delay_s = zip(*iterations, strict=True)
    return IterationTimes(
        job_id="j1",
        allocation_id=f"0/9/0/{rank}",
        node_id=f"n{rank}",
        rank=rank,
        process=rank,
        steps=tuple(map(int, steps)),
        iteration_s=own_s,
        own_s=own_s,
        delay_s=delay_s if with_delays else (),
    )


def suspected(name: str, *, with_delays: bool) -> list[tuple[int, int]]:
    """Return (report, rank) of each suspicion."""
    decider = FailSlow()
    state, evidence = given(decider, POOL, watched(gang(workers=RANKS))), Evidence(Thresholds())
    suspicions = []
    for number, ranks in enumerate(read(name)["reports"]):
        present = [(rank, own) for rank, own in enumerate(ranks) if own]
        times = tuple(row(rank, own, with_delays=with_delays) for rank, own in present)
        at = 1 + number * REPORT_MS
        evidence.add(TelemetryReported(executor_id="e", at=at, times=times), state.gangs)
        for message in evidence.take_news(state):
            for event in verdicts(decider, state, [an_input(message, "local")]):
                if isinstance(event, FaultSuspected):
                    suspicions.append((number, int(event.fault_id.split("/")[2])))
    return suspicions


def test_no_rank_of_a_loaded_host_is_suspected() -> None:
    assert suspected("loaded", with_delays=True) == []


def test_without_the_wait_for_a_processor_one_would_be() -> None:
    """So it is reported."""
    assert suspected("loaded", with_delays=False) != []


@pytest.mark.parametrize(("name", "slow"), [("slow", 2), ("light", 1)])
def test_a_rank_that_is_slow_by_itself_is_suspected_there_alone(name: str, slow: int) -> None:
    recorded = read(name)
    assert recorded["slow"] == slow
    suspicions = suspected(name, with_delays=True)
    assert {rank for _, rank in suspicions} == {slow}
    assert min(number for number, _ in suspicions) >= len(recorded["reports"]) // 2
