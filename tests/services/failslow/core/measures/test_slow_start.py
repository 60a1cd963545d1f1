"""A job that is slow from its start is seen by earlier runs of its series; no healthy one is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.detection.detector import Detector
from services.failslow.core.measures.slow_start import COMPARED_AFTER, is_comparable, settled_level
from services.failslow.core.state import JOB, FailSlowState
from services.failslow.core.suspicion.pace import JobPaces
from shared.contracts.attempts import JobSucceeded
from shared.contracts.base import Event
from shared.contracts.faults import FaultSuspected
from shared.contracts.paces import PaceLearned
from shared.contracts.pools import PoolConfigured
from tests.harness.decider import an_input, given, run
from tests.services.failslow.core.detection.series import steady
from tests.services.failslow.core.suspicion.test_pace import a_report
from tests.services.failslow.gangs import POOL, placed

FAILSLOW = FailSlow()
AGENTS = POOL.model_copy(update={"backends": ("agent",)})
PER_REPORT = 5


def run_job(
    state: FailSlowState,
    paces: JobPaces,
    seconds: Sequence[float],
    job_id: str = "j1",
    *,
    end: bool = True,
) -> list[Event]:
    """Place a job of one worker that reports these iterations, and end it."""
    events = run(FAILSLOW, state, [placed(job_id, workers=1)])
    for start in range(0, len(seconds), PER_REPORT):
        report = a_report(start, seconds[start : start + PER_REPORT], series="s", job_id=job_id)
        paces.add(report, state.gangs)
        events += offered(state, paces)
    if end:
        done = JobSucceeded(job_id=job_id, tenant="acme", attempt=1)
        events += run(FAILSLOW, state, [an_input(done, "placement")])
        events += offered(state, paces)
    return events


def offered(state: FailSlowState, paces: JobPaces) -> list[Event]:
    """Decide about all that the shell would offer now."""
    messages = [*paces.take_changes(state), *paces.take_settled()]
    return [e for m in messages for e in run(FAILSLOW, state, [an_input(m, "local")])]


def with_runs(
    runs: int, pool: PoolConfigured = AGENTS, factor: float = 1.0
) -> tuple[FailSlowState, JobPaces]:
    state, paces = given(FAILSLOW, pool), JobPaces()
    for number in range(runs):
        job_id, seconds = f"earlier-{number}", factor * steady(80, seed=number)
        events = run_job(state, paces, [float(value) for value in seconds], job_id)
        assert not suspicions(events)
    return state, paces


def suspicions(events: list[Event]) -> list[FaultSuspected]:
    return [event for event in events if isinstance(event, FaultSuspected)]


def times(factor: float, length: int = 80) -> list[float]:
    return [float(value) for value in factor * steady(length, seed=99)]


def test_a_job_of_one_worker_that_is_slow_from_its_start_is_suspected() -> None:
    state, paces = with_runs(3)
    (fault,) = suspicions(run_job(state, paces, times(1.5), end=False))
    assert (fault.kind, fault.node_id, fault.since_step, fault.earlier_runs) == ("job", "", 0, 3)
    assert fault.slowdown == pytest.approx(1.5, rel=0.03)
    assert fault.peers_s == pytest.approx(1.0, rel=0.03)
    assert fault.cause_evidence == ("own work and waiting of earlier runs are not kept",)


def test_its_recovery_is_seen() -> None:
    state, paces = with_runs(3)
    run_job(state, paces, [*times(1.5), *times(1.0)], end=False)
    assert state.gangs["j1"].open == {}
    assert state.gangs["j1"].counts == {JOB: 1}


@pytest.mark.parametrize(("runs", "factor"), [(2, 1.5), (3, 1.1), (3, 1.0), (3, 0.5)])
def test_too_few_runs_or_too_small_a_difference_raise_no_suspicion(
    runs: int, factor: float
) -> None:
    state, paces = with_runs(runs)
    assert suspicions(run_job(state, paces, times(factor))) == []


def test_a_change_that_stays_is_usual_after_three_runs() -> None:
    state, paces = with_runs(5)
    counts = [len(suspicions(run_job(state, paces, times(1.5), f"j{n}"))) for n in range(5)]
    assert counts == [1, 1, 1, 0, 0]


def test_the_pace_is_learned_in_the_ledger_and_survives_the_shell() -> None:
    state, paces = with_runs(2)
    events = run_job(state, paces, times(1.0), "third")
    (learned,) = (event for event in events if isinstance(event, PaceLearned))
    assert (learned.series, learned.job_id, learned.has_work) == ("s", "third", False)
    assert learned.pace_s == pytest.approx(1.0, rel=0.01)
    assert suspicions(run_job(state, JobPaces(), times(1.5)))


def test_a_pool_without_mitigation_learns_nothing() -> None:
    """Its ledger stays readable for the release that configured it."""
    state, _ = with_runs(3, AGENTS.model_copy(update={"mitigation": "off"}))
    assert state.paces.usual("s", has_work=False) is None


def test_a_job_of_one_virtual_worker_is_judged_as_one_on_an_agent() -> None:
    state, paces = with_runs(3, POOL)
    assert len(suspicions(run_job(state, paces, times(1.5)))) == 1


def test_what_hardly_ran_is_neither_compared_nor_learned() -> None:
    detector = Detector(1)
    assert not is_comparable(detector, 0)
    assert settled_level(detector, 0, is_slow_since_start=False) is None
    state, paces = with_runs(3)
    events = run_job(state, paces, times(1.5, COMPARED_AFTER - 1))
    assert not any(isinstance(event, FaultSuspected | PaceLearned) for event in events)
