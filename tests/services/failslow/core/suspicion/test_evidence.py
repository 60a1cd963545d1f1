"""Evidence: the messages it offers to the decider, and the cost of losing it."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from services.failslow.core.decide import FailSlow
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.state import FailSlowState
from services.failslow.core.suspicion.evidence import FRESH_MS, MOST_PROCESSES, Evidence
from shared.contracts.base import Event
from shared.contracts.faults import FaultCleared, FaultSuspected
from shared.contracts.reports import TelemetryReported
from tests.harness.decider import an_input, given
from tests.services.failslow.gangs import POOL, gang, report, verdicts, watched

FAILSLOW = FailSlow()


def pool() -> FailSlowState:
    return given(FAILSLOW, POOL, watched(gang()))


def decide_on(
    state: FailSlowState, evidence: Evidence, reports: list[TelemetryReported]
) -> list[Event]:
    """Read the reports one by one, as the shell does, and return the resulting events."""
    events: list[Event] = []
    for telemetry in reports:
        evidence.add(telemetry, state.gangs)
        for message in evidence.take_news(state):
            events += verdicts(FAILSLOW, state, [an_input(message, "local")])
    return events


def slow_reports(count: int, start: int = 1) -> list[TelemetryReported]:
    return [report(at, 1.0, 1.0, 1.5, 1.0) for at in range(start, start + count)]


def test_nothing_is_offered_while_there_is_no_news() -> None:
    evidence, state = Evidence(Thresholds()), pool()
    for at in range(1, 20):
        evidence.add(report(at, 1.0, 1.0, 1.05, 1.0), state.gangs)
        assert evidence.take_news(state) == []


def test_the_third_slow_report_opens_a_fault_and_three_good_ones_clear_it() -> None:
    evidence, state = Evidence(Thresholds()), pool()
    assert decide_on(state, evidence, slow_reports(2)) == []
    (fault,) = decide_on(state, evidence, slow_reports(5, start=3))
    assert isinstance(fault, FaultSuspected)
    (end,) = decide_on(state, evidence, [report(at, 1.0, 1.0, 1.0, 1.0) for at in range(8, 11)])
    assert isinstance(end, FaultCleared)


def test_a_report_read_many_times_counts_once() -> None:
    evidence, state = Evidence(Thresholds()), pool()
    assert decide_on(state, evidence, slow_reports(2) * 20) == []


def test_lost_evidence_only_costs_time() -> None:
    """A restart loses the evidence; as many new reports lead to the same fault."""
    state = pool()
    decide_on(state, Evidence(Thresholds()), slow_reports(2))
    (fault,) = decide_on(state, Evidence(Thresholds()), slow_reports(3, start=10))
    assert isinstance(fault, FaultSuspected)


def one_per_executor(at: int) -> list[TelemetryReported]:
    """Four executors, each with its own worker."""
    whole = report(at, 1.0, 1.02, 1.5, 0.99)
    return [
        TelemetryReported(executor_id=f"e{rank}", at=at, times=(times,))
        for rank, times in enumerate(whole.times)
    ]


@settings(max_examples=50, deadline=None)
@for_all(st.lists(st.sampled_from([0, 1, 1, 1, 2, 3]), min_size=80, max_size=80))
def test_losing_or_repeating_reports_is_harmless(copies: list[int]) -> None:
    """Whatever is lost or repeated, n2 alone is suspected, once, and at the latest when three
    reports of all have come through."""
    state, evidence = pool(), Evidence(Thresholds())
    sent = [message for at in range(1, 21) for message in one_per_executor(at)]
    read = [message for message, count in zip(sent, copies, strict=True) for _ in range(count)]
    whole = [message for at in range(30, 33) for message in one_per_executor(at)]
    events = decide_on(state, evidence, read + whole)
    assert [type(event) for event in events] == [FaultSuspected]
    assert isinstance(events[0], FaultSuspected)
    assert events[0].node_id == "n2"


def test_a_worker_that_stopped_reporting_is_no_peer() -> None:
    """Its old times would make the others look slow once the whole gang slows down."""
    state = given(FAILSLOW, POOL, watched(gang(workers=2)))
    evidence = Evidence(Thresholds())
    decide_on(state, evidence, [report(at, 1.0, 1.0) for at in range(1, 5)])
    later = [report(FRESH_MS + at, 3.0) for at in range(5, 10)]
    assert decide_on(state, evidence, later) == []


def test_a_worker_that_trains_on_cpus_is_no_slow_gpu() -> None:
    """Such a training reports its wait for a processor, though it had none."""
    evidence, state = Evidence(Thresholds()), pool()
    reports = []
    for telemetry in slow_reports(3):
        rows = (
            row.model_copy(
                update={"own_s": row.iteration_s, "delay_s": (0.0,) * len(row.iteration_s)}
            )
            for row in telemetry.times
        )
        reports.append(telemetry.model_copy(update={"times": tuple(rows)}))
    (fault,) = decide_on(state, evidence, reports)
    assert isinstance(fault, FaultSuspected)
    assert (fault.cause, fault.part, fault.gpu) == ("compute", "", None)


def test_times_of_jobs_that_are_not_watched_are_not_kept() -> None:
    evidence, state = Evidence(Thresholds()), pool()
    evidence.add(report(1, 1.0, 1.0, job_id="unknown"), state.gangs)
    evidence.add(report(1, 1.0, 1.0), state.gangs)
    state.gangs.clear()
    assert evidence.take_news(state) == []
    assert evidence._windows.of("j1", 1) is None


def test_a_worker_that_names_ever_new_processes_pushes_out_its_own_alone() -> None:
    evidence, state = Evidence(Thresholds()), pool()
    decide_on(state, evidence, slow_reports(2))
    for at in range(3, 400):
        flood = times_of_processes(at, range(1000 * at, 1000 * at + 16))
        evidence.add(flood, state.gangs)
    kept = evidence._windows.begin("j1", 1)
    assert [len(kept[f"0/9/0/{rank}"]) for rank in range(4)] == [MOST_PROCESSES, 1, 1, 1]


def times_of_processes(at: int, processes: Iterable[int]) -> TelemetryReported:
    """Reports of processes of the first worker."""
    (first, *_) = report(at, 1.0).times
    rows = tuple(first.model_copy(update={"process": number}) for number in processes)
    return TelemetryReported(executor_id="e1", at=at, times=rows)
