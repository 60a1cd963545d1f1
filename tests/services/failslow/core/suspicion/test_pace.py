from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import JOB, FailSlowState
from services.failslow.core.suspicion.pace import JobPaces
from shared.contracts.base import Event
from shared.contracts.faults import DismissFault, FaultSuspected
from shared.contracts.paces import JobPaceChanged
from shared.contracts.reports import TelemetryReported
from tests.harness.decider import an_input, given, run
from tests.services.failslow.core.detection.series import steady
from tests.services.failslow.gangs import POOL, gang, report, watched

PER_REPORT = 5


def state_of(*jobs: str, attempt: int = 1) -> FailSlowState:
    return given(FailSlow(), POOL, watched(*(gang(job, attempt=attempt) for job in jobs)))


def a_report(first: int, seconds: Sequence[float], **columns: object) -> TelemetryReported:
    """Iterations of the first rank, as an agent reports them."""
    base = report(1000 + first, *[1.0] * 4)
    steps = tuple(range(first, first + len(seconds)))
    times = base.times[0].model_copy(
        update={"iteration_s": tuple(seconds), "steps": steps, **columns}
    )
    return base.model_copy(update={"times": (times,)})


def feed(
    state: FailSlowState,
    paces: JobPaces,
    seconds: Sequence[float],
    first: int = 0,
    repeats: int = 1,
) -> list[Event]:
    """Report the iterations, decide about what the paces offer, and return the events."""
    events: list[Event] = []
    for start in range(0, len(seconds), PER_REPORT):
        for _ in range(repeats):
            paces.add(a_report(first + start, seconds[start : start + PER_REPORT]), state.gangs)
        for change in paces.take_changes(state):
            events += run(FailSlow(), state, [an_input(change, "local")])
    return events


def types(events: Sequence[Event]) -> list[str]:
    return [event.TYPE for event in events]


def slowed(length: int = 300) -> list[float]:
    seconds = steady(length)
    seconds[100:200] *= 1.4
    return [float(value) for value in seconds]


def test_a_job_that_becomes_slow_is_a_fault_until_it_recovers() -> None:
    state = state_of("j1")
    events = feed(state, JobPaces(), slowed())
    assert types(events) == ["fault.suspected.v1", "fault.cleared.v1"]
    suspected = events[0]
    assert isinstance(suspected, FaultSuspected)
    assert (suspected.fault_id, suspected.kind, suspected.node_id) == ("j1/1/job/1", "job", "")
    assert suspected.since_step == 100
    assert suspected.slowdown == pytest.approx(1.4, abs=0.03)
    assert suspected.peers_s == pytest.approx(1.0, abs=0.02)
    assert state.gangs["j1"].open == {}
    assert state.gangs["j1"].pace is None


def test_reports_that_are_read_twice_change_nothing() -> None:
    once = feed(state_of("j1"), JobPaces(), slowed())
    assert feed(state_of("j1"), JobPaces(), slowed(), repeats=2) == once


def test_a_restart_in_a_slowdown_raises_no_alarm_and_sees_the_recovery() -> None:
    seconds = slowed()
    state = state_of("j1")
    before = feed(state, JobPaces(), seconds[:150])
    after = feed(state, JobPaces(), seconds[150:], first=150)
    assert types(before) == ["fault.suspected.v1"]
    assert types(after) == ["fault.cleared.v1"]


def test_a_recovery_during_an_outage_is_seen_after_it() -> None:
    seconds = slowed()
    state = state_of("j1")
    feed(state, JobPaces(), seconds[:150])
    assert types(feed(state, JobPaces(), seconds[220:], first=220)) == ["fault.cleared.v1"]


def test_restarts_in_a_healthy_job_raise_no_alarm() -> None:
    seconds = [float(value) for value in steady(600)]
    state = state_of("j1")
    for start in range(0, 600, 60):
        assert feed(state, JobPaces(), seconds[start : start + 60], first=start) == []


def test_a_dismissed_slowdown_is_not_suspected_again_in_the_attempt() -> None:
    state = state_of("j1")
    paces = JobPaces()
    feed(state, paces, slowed()[:150])
    run(FailSlow(), state, [an_input(DismissFault(fault_id="j1/1/job/1"), "commands")])
    assert JOB in state.gangs["j1"].muted
    again = [*slowed()[150:], *slowed()]
    assert feed(state, paces, again, first=150) == []


def test_a_job_that_ends_clears_its_fault_and_is_forgotten() -> None:
    state = state_of("j1")
    paces = JobPaces()
    feed(state, paces, slowed()[:150])
    state.gangs.clear()
    assert paces.take_changes(state) == []
    assert paces._paces == {}


def test_evaluations_and_work_are_taken_from_the_columns() -> None:
    state = state_of("j1")
    paces = JobPaces()
    seconds = [float(value) for value in steady(300)]
    tokens = [4096 if step < 150 else 8192 for step in range(300)]
    times = [own * (2 if step >= 150 else 1) for step, own in enumerate(seconds)]
    kinds = ["evaluation" if step % 100 > 80 else "train" for step in range(300)]
    slow = [
        own * 3 if kind == "evaluation" else own for own, kind in zip(times, kinds, strict=True)
    ]
    columns = {"tokens": tuple(tokens), "kinds": tuple(kinds)}
    paces.add(a_report(0, slow, **columns), state.gangs)
    assert paces.take_changes(state) == []


def test_only_the_first_rank_and_one_of_its_processes_count() -> None:
    state = state_of("j1")
    paces = JobPaces()
    seconds = slowed()
    for process in (3, 5):
        paces.add(a_report(0, seconds[:150], process=process), state.gangs)
    (change,) = paces.take_changes(state)
    assert isinstance(change, JobPaceChanged)
    assert change.is_slow


def test_many_jobs_share_detectors_and_places_are_used_again() -> None:
    names = [f"j{number}" for number in range(40)]
    state = state_of(*names)
    paces = JobPaces()
    base = report(1, *[1.0] * 4)
    seconds = tuple(slowed()[:120])
    for name in names:
        times = base.times[0].model_copy(update={"job_id": name, "iteration_s": seconds})
        paces.add(base.model_copy(update={"times": (times,)}), state.gangs)
    assert sorted(change.job_id for change in paces.take_changes(state)) == sorted(names)
    state.gangs.clear()
    paces.take_changes(state)
    assert len(paces._free) == 64
