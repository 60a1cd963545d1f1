"""Suspicions, recoveries and answers of fail-slow's decider."""

from __future__ import annotations

import pytest

from services.failslow.core import state as state_module
from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobPreempted,
    JobRequeued,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.faults import (
    DismissFault,
    FaultCleared,
    FaultDismissed,
    FaultSuspected,
    GangsNoted,
    MarkFalseAlarm,
)
from shared.ledger.decider import Fact, Undecodable
from tests.harness.decider import an_input, given
from tests.harness.hash_seeds import printed_under_two_hash_seeds
from tests.services.failslow.gangs import POOL, gang, iterated, placed, verdicts, watched

FAILSLOW = FailSlow()
HEALTHY = [1.0] * 3
SLOW = [1.4] * 3
FAULT = "j1/1/2/1"


def pool(*events: Event) -> FailSlowState:
    return given(FAILSLOW, POOL, *events)


def suspected(fault_id: str = FAULT) -> FaultSuspected:
    return FaultSuspected(
        fault_id=fault_id,
        job_id="j1",
        tenant="acme",
        node_id="n2",
        allocation_id="0/9/0/2",
        slowdown=1.4,
        iteration_s=1.4,
        peers_s=1.0,
        score=20.0,
        reports=3,
    )


def test_a_placed_gang_is_watched_with_its_allocations() -> None:
    assert verdicts(FAILSLOW, pool(), [placed("j1", workers=4)]) == [watched(gang("j1", 4))]


def test_one_event_lists_all_gangs_of_a_batch() -> None:
    state = pool(watched(gang("old")))
    ended = an_input(JobSucceeded(job_id="old", tenant="acme", attempt=1), "placement")
    events = verdicts(FAILSLOW, state, [placed("a"), ended, placed("b")])
    assert events == [GangsNoted(pool="main", started=(gang("a"), gang("b")), ended=("old",))]
    assert sorted(state.gangs) == ["a", "b"]


def test_a_gang_that_came_and_went_in_one_batch_is_not_noted() -> None:
    ended = an_input(JobSucceeded(job_id="j1", tenant="acme", attempt=1), "placement")
    assert verdicts(FAILSLOW, pool(), [placed("j1"), ended]) == []


def test_a_job_placed_anew_is_watched_under_its_new_attempt() -> None:
    state = pool(watched(gang("j1", attempt=1)))
    back = an_input(
        JobRequeued(job_id="j1", tenant="acme", attempt=2, reason="preempted"), "placement"
    )
    verdicts(FAILSLOW, state, [back, placed("j1", attempt=2)])
    assert state.gangs["j1"].attempt == 2


ENDS = [
    JobPreempted(job_id="j1", tenant="acme", attempt=1, reason="higher_class"),
    JobStopRequested(job_id="j1", tenant="acme", attempt=1, reason="cancelled"),
    JobStartFailed(job_id="j1", tenant="acme", attempt=1, node_ids=("n1",), reason="refused"),
    JobRequeued(job_id="j1", tenant="acme", attempt=2, reason="preempted"),
    JobAttemptFailed(job_id="j1", tenant="acme", attempt=1, reason="exit_code"),
    JobSucceeded(job_id="j1", tenant="acme", attempt=1),
    JobFailed(job_id="j1", tenant="acme", attempt=1, reason="exit_code"),
    JobCancelled(job_id="j1", tenant="acme", attempt=1),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda e: e.TYPE)
def test_every_end_of_a_gang_clears_its_faults(end: Event) -> None:
    state = pool(watched(gang()), suspected())
    cleared, noted = verdicts(FAILSLOW, state, [an_input(end, "placement")])
    assert isinstance(cleared, FaultCleared)
    assert (cleared.fault_id, cleared.reason, cleared.node_id) == (FAULT, "job_ended", "n2")
    assert noted == GangsNoted(pool="main", ended=("j1",))
    assert verdicts(FAILSLOW, state, [an_input(end, "placement")]) == []


def test_a_worker_slower_than_its_peers_is_suspected() -> None:
    state = pool(watched(gang()))
    (event,) = verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    assert isinstance(event, FaultSuspected)
    assert (event.fault_id, event.node_id, event.allocation_id) == (FAULT, "n2", "0/9/0/2")
    assert (event.iteration_s, event.peers_s, event.reports) == (1.4, 1.0, 3)
    assert event.slowdown == pytest.approx(1.4)
    assert event.tenant == "acme"


def test_the_same_evidence_again_changes_nothing() -> None:
    state = pool(watched(gang()), suspected())
    assert verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)] * 3) == []


def test_a_gang_that_slows_as_a_whole_has_no_peer_fault() -> None:
    state = pool(watched(gang()))
    windows = [[1.0, 1.0, 1.0, 3.0, 3.0, 3.0]] * 4
    assert verdicts(FAILSLOW, state, [iterated(*windows)]) == []


def test_a_worker_is_cleared_only_when_it_is_healthy_again() -> None:
    state = pool(watched(gang()), suspected())
    between = [1.15] * 3
    assert verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, between, HEALTHY)]) == []
    assert verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, [1.4, 1.0, 1.0], HEALTHY)]) == []
    (event,) = verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, [1.05] * 3, HEALTHY)])
    assert isinstance(event, FaultCleared)
    assert (event.fault_id, event.reason) == (FAULT, "recovered")


def test_a_worker_that_relapses_is_a_new_fault() -> None:
    state = pool(watched(gang()), suspected())
    verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, HEALTHY, HEALTHY)])
    (event,) = verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    assert isinstance(event, FaultSuspected)
    assert event.fault_id == "j1/1/2/2"


def test_iteration_times_of_unknown_jobs_and_other_attempts_are_ignored() -> None:
    state = pool(watched(gang("other")))
    assert verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)]) == []
    moved = gang("j1")
    workers = tuple(w.model_copy(update={"allocation_id": "0/99/0/0"}) for w in moved.workers)
    state = pool(watched(moved.model_copy(update={"workers": workers})))
    assert verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)]) == []


@pytest.mark.parametrize("implausible", [0.0, -1.0, 1e300, 1e-300])
def test_implausible_times_are_not_compared(implausible: float) -> None:
    state = pool(watched(gang()))
    events = verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, [implausible] * 3)])
    assert [type(event) for event in events] == [FaultSuspected]


def test_an_operator_dismisses_a_fault_and_it_stays_closed() -> None:
    state = pool(watched(gang()), suspected())
    command = an_input(DismissFault(fault_id=FAULT, reason="known"), id="c1", tenant="ops")
    assert verdicts(FAILSLOW, state, [command]) == [
        CommandAccepted(command_id="c1", command_type="fault.dismiss.v1", of=FAULT, tenant="ops"),
        FaultDismissed(
            fault_id=FAULT,
            job_id="j1",
            tenant="acme",
            node_id="n2",
            false_alarm=False,
            reason="known",
        ),
    ]
    assert verdicts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)]) == []


def test_a_command_delivered_twice_is_answered_once() -> None:
    state = pool(watched(gang()), suspected())
    command = an_input(DismissFault(fault_id=FAULT), id="c1")
    assert len(verdicts(FAILSLOW, state, [command, command])) == 2
    assert verdicts(FAILSLOW, state, [command]) == []


@pytest.mark.parametrize("command", [DismissFault, MarkFalseAlarm])
def test_an_unknown_fault_is_refused(command: type[DismissFault] | type[MarkFalseAlarm]) -> None:
    (event,) = verdicts(FAILSLOW, pool(), [an_input(command(fault_id="j9/1/0/1"), id="c1")])
    assert isinstance(event, CommandRefused)
    assert (event.reason, event.of) == ("unknown_fault", "j9/1/0/1")


def test_a_command_before_the_pool_is_known_is_refused() -> None:
    (event,) = verdicts(FAILSLOW, given(FAILSLOW), [an_input(DismissFault(fault_id=FAULT))])
    assert isinstance(event, CommandRefused)
    assert event.reason == "unknown_pool"


def test_a_closed_fault_may_be_marked_a_false_alarm_once() -> None:
    state = pool(watched(gang()), suspected(), FaultCleared(fault_id=FAULT, job_id="j1", reason=""))

    def answers(command: DismissFault | MarkFalseAlarm) -> list[str]:
        events = verdicts(FAILSLOW, state, [an_input(command)])
        return [getattr(event, "reason", event.TYPE) for event in events]

    assert answers(DismissFault(fault_id=FAULT)) == ["already_closed"]
    assert answers(MarkFalseAlarm(fault_id=FAULT)) == [
        "command.accepted.v1",
        "",
        "thresholds.adjusted.v1",
    ]
    assert state.faults[FAULT].status == "false_alarm"
    assert answers(MarkFalseAlarm(fault_id=FAULT)) == ["already_closed"]


def test_only_the_newest_closed_faults_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "CLOSED_KEPT", 2)
    state = pool(watched(gang()))
    for count in range(1, 6):
        for event in (
            suspected(f"j1/1/2/{count}"),
            FaultCleared(fault_id=f"j1/1/2/{count}", job_id="j1", reason="recovered"),
        ):
            FAILSLOW.evolve(state, _fact(event))
    assert list(state.faults) == ["j1/1/2/4", "j1/1/2/5"]


def test_the_pool_is_written_once() -> None:
    state = given(FAILSLOW)
    restated = an_input(POOL, "access")
    other = an_input(POOL.model_copy(update={"partition": 1, "pool": "b"}), "access")
    assert verdicts(FAILSLOW, state, [restated, restated, other]) == [POOL]


def test_an_undecodable_input_is_rejected() -> None:
    bad = an_input(Undecodable("commands", 0, 7, "not JSON", "0" * 64))
    (event,) = verdicts(FAILSLOW, pool(), [bad])
    assert event.TYPE == "input.rejected.v1"


SCRIPT = """
from shared.contracts.codec import encode_event
from services.failslow.core.decide import FailSlow
from tests.harness.decider import given, run
from tests.services.failslow.gangs import POOL, gang, iterated, placed, watched
slow = [iterated(*[[1 + 0.5 * (r % 3 == 2)] * 3 for r in range(9)], job_id=j) for j in "abc"]
state = given(FailSlow(), POOL)
for inputs in ([placed(j, 9) for j in "abc"], slow, [placed(j, 9, 2) for j in "cab"]):
    for event in run(FailSlow(), state, inputs):
        print(event.TYPE, encode_event(event).decode())
"""


@pytest.mark.process
def test_two_hash_seeds_give_the_same_decisions() -> None:
    outputs = printed_under_two_hash_seeds(SCRIPT)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("fault.suspected.v1") == 9
    assert outputs[0].count("fault.cleared.v1") == 9


def _fact(event: Event) -> Fact:
    return Fact(event, "failslow", 0, 1, 0, 0)
