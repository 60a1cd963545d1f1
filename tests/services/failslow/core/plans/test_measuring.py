"""A job that is slow as a whole with no known part has its nodes measured, under the same rules."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.plans.measuring import VERDICT_S, cost_s, layout_of
from services.failslow.core.plans.planning import due_at, ledger_ms
from services.failslow.core.state import FailSlowState, OwnValidation
from services.failslow.validation_job import (
    cancellation,
    due_cancels,
    due_validations,
    encoded,
    submission,
)
from shared.contracts.attempts import JobPreempted
from shared.contracts.base import Event
from shared.contracts.breaker import BreakerChanged
from shared.contracts.faults import Cause, GangWorker
from shared.contracts.mitigation import (
    ApproveMitigation,
    MitigationApplied,
    MitigationCleared,
    MitigationPlanned,
    NodeHealthScored,
)
from shared.contracts.nodes import NodeCordoned
from shared.contracts.paces import JobPaceChanged
from shared.contracts.pools import PoolConfigured
from shared.contracts.validation import FIRST_LINK, NodesValidated, ValidationMeasured
from shared.ledger.cloudevents import decode
from tests.harness.decider import AT, an_input, fold, given
from tests.services.failslow.core.suspicion.test_validations import node
from tests.services.failslow.gangs import POOL, gang, iterated, placed, watched
from tests.services.failslow.paces import pace_change
from tests.services.failslow.plans import run, wake

FAILSLOW = FailSlow()
RELEASED = POOL.model_copy(update={"release": 1})
AUTOMATIC = RELEASED.model_copy(update={"mitigation": "automatic"})


def pace(cause: Cause = "unknown", is_slow: bool = True, job_id: str = "j1") -> JobPaceChanged:
    return pace_change(
        job_id=job_id, is_slow=is_slow, since_step=100, iterations=6, score=30.0, cause=cause
    )


def slow_job(
    pool: PoolConfigured = RELEASED,
    cause: Cause = "unknown",
    workers: int = 4,
    preemptible: bool = True,
) -> FailSlowState:
    state = given(FAILSLOW, pool)
    run(FAILSLOW, state, [placed("j1", workers=workers, preemptible=preemptible)])
    run(FAILSLOW, state, [an_input(pace(cause), "local")])
    return state


def when_due(state: FailSlowState) -> list[Event]:
    due = due_at(state)
    return [] if due is None else wake(FAILSLOW, state, due)


def measured(state: FailSlowState, slow: int | None = 2, link: float = 1.0) -> list[Event]:
    """The measurements of the one validation, in which a node, or the link of n2, is slow."""
    (job_id,) = state.validations
    return measured_by(state, job_id, slow, link)


def measured_by(
    state: FailSlowState, job_id: str, slow: int | None = 2, link: float = 1.0
) -> list[Event]:
    times = tuple(dict(node(r, 4, slower=1.5 if r == slow else 1.0)) for r in range(4))
    times[2][FIRST_LINK + 3] *= link
    message = ValidationMeasured(
        job_id=job_id,
        tenant="acme",
        attempt=1,
        node_ids=tuple(f"n{rank}" for rank in range(4)),
        times_s=times,
    )
    return run(FAILSLOW, state, [an_input(message, "local")])


def placement(state: FailSlowState, event: Event) -> list[Event]:
    return run(FAILSLOW, state, [an_input(event, "placement")])


def stopped(state: FailSlowState) -> list[Event]:
    preempted = JobPreempted(job_id="j1", tenant="acme", attempt=1, reason="higher_class")
    return placement(state, preempted)


@pytest.mark.parametrize("cause", ["unknown", "communication"])
def test_its_nodes_are_to_be_measured_once_the_loss_has_reached_the_cost(cause: Cause) -> None:
    state = slow_job(cause=cause)
    due = due_at(state)
    assert due is not None
    assert (due - AT) / 1000 == pytest.approx(cost_s(state.mitigation) * 3, rel=0.01)
    assert wake(FAILSLOW, state, due - 1) == []
    (plan,) = wake(FAILSLOW, state, due)
    assert isinstance(plan, MitigationPlanned)
    assert (plan.plan_id, plan.level, plan.actor) == ("j1/1/validate/1", "validate", "berth")
    assert plan.node_ids == ("n0", "n1", "n2", "n3") and plan.fault_ids == ("j1/1/job/1",)
    assert plan.accumulated_loss_s == pytest.approx(plan.cost_s, rel=0.01)
    assert due_at(state) is None, "once per attempt"


@pytest.mark.parametrize(
    ("pool", "cause", "workers"),
    [
        (RELEASED, "compute", 4),
        (RELEASED, "unknown", 2),
        (RELEASED.model_copy(update={"mitigation": "off"}), "unknown", 4),
        (POOL, "unknown", 4),
    ],
    ids=["cause known", "a pair", "switched off", "before the end of the upgrade"],
)
def test_others_are_not_measured(pool: PoolConfigured, cause: Cause, workers: int) -> None:
    assert due_at(slow_job(pool, cause, workers)) is None


def test_a_slow_worker_explains_more() -> None:
    state = slow_job()
    run(FAILSLOW, state, [iterated([1.0] * 3, [1.0] * 3, [1.5] * 3, [1.0] * 3)])
    events: list[Event] = []
    while (due := due_at(state)) is not None:
        events += wake(FAILSLOW, state, due)
    assert {event.level for event in events if isinstance(event, MitigationPlanned)} == {
        "redistribute",
        "migrate",
    }


def test_nothing_is_submitted_before_an_operator_approves_it() -> None:
    state = slow_job()
    when_due(state)
    assert due_validations(state, AT) == {}
    command = ApproveMitigation(plan_id="j1/1/validate/1")
    events = run(FAILSLOW, state, [an_input(command, "commands")])
    (applied,) = [event for event in events if isinstance(event, MitigationApplied)]
    assert (applied.level, applied.by, applied.cordons) == ("validate", "operator", False)
    ((job_id, own),) = due_validations(state, AT).items()
    submitted = submission(state, job_id, own)
    assert submitted.job_id == job_id and submitted.by_operator
    spec = submitted.spec
    assert spec.validates == ("n0", "n1", "n2", "n3") == own.node_ids
    assert (spec.gang.workers, spec.gang.gpus_per_worker, spec.priority_class) == (4, 1, "system")


def test_a_pool_that_is_automatic_needs_no_operator() -> None:
    state = slow_job(AUTOMATIC)
    _, applied = when_due(state)
    assert isinstance(applied, MitigationApplied)
    assert (applied.by, applied.cordons) == ("automatic", False)
    assert not state.fleet.ordered, "to measure takes no node out of use"
    assert len(due_validations(state, AT)) == 1


def test_the_breaker_holds_it_where_no_node_could_be_cordoned() -> None:
    state = slow_job(AUTOMATIC)
    placement(state, NodeCordoned(node_id="n0"))
    events = when_due(state)
    assert [type(event) for event in events] == [MitigationPlanned, BreakerChanged]
    assert due_validations(state, AT) == {}


def test_where_all_jobs_are_slow_one_is_measured_at_a_time() -> None:
    state = slow_job(AUTOMATIC)
    run(FAILSLOW, state, [placed("j2", tenant="other")])
    run(FAILSLOW, state, [an_input(pace(job_id="j2"), "local")])
    when_due(state)
    run(FAILSLOW, state, [], due_at(state) or 0)
    stopped(state)
    assert len(state.validations) == 1
    turn = FAILSLOW.next_wake(state)
    fold(FAILSLOW, state, [watched(gang("v1").model_copy(update={"validates": True}))])
    assert FAILSLOW.next_wake(state) is None, "until it has ended"
    fold(FAILSLOW, state, [watched().model_copy(update={"ended": ("v1",)})])
    assert turn is not None
    (applied,) = wake(FAILSLOW, state, turn)
    assert isinstance(applied, MitigationApplied) and applied.job_id == "j2"


def test_after_its_verdict_the_job_leaves_the_part_that_deviates() -> None:
    state = slow_job(AUTOMATIC)
    measured_by(state, "by-an-operator")
    when_due(state)
    validated, *rest = measured(state)
    assert isinstance(validated, NodesValidated) and validated.suspect_node_ids == ("n2",)
    score, plan, applied = rest
    assert isinstance(score, NodeHealthScored) and score.node_id == "n2" and score.score < 1
    assert isinstance(plan, MitigationPlanned)
    assert (plan.level, plan.node_ids, plan.rule) == ("migrate", ("n2",), "measured")
    assert plan.evidence == validated.evidence[:4]
    assert isinstance(applied, MitigationApplied) and applied.cordons
    assert state.validations == {}


def test_a_job_that_waits_does_not_return_to_it() -> None:
    state = slow_job(AUTOMATIC)
    measured_by(state, "by-an-operator")
    when_due(state)
    assert any(isinstance(event, MitigationCleared) for event in stopped(state))
    *_, cordoning = measured(state)
    assert isinstance(cordoning, MitigationApplied)
    assert (cordoning.level, cordoning.node_ids, cordoning.cordons) == ("validate", ("n2",), True)
    assert state.fleet.out_of_use == {"n2"}


def test_of_a_slow_link_one_end_is_left() -> None:
    state = slow_job(AUTOMATIC)
    when_due(state)
    validated, *rest = measured(state, slow=None, link=3.0)
    assert isinstance(validated, NodesValidated)
    assert (validated.part, validated.suspect_node_ids) == ("link", ("n2", "n3"))
    plans = [event for event in rest if isinstance(event, MitigationPlanned)]
    assert [plan.node_ids for plan in plans] == [("n2",)]
    healths = [event.score for event in rest if isinstance(event, NodeHealthScored)]
    assert len(healths) == 2 and healths[0] == healths[1] < 0.4


def test_without_automation_a_verdict_is_health_and_a_plan_for_an_operator() -> None:
    state = slow_job()
    when_due(state)
    run(FAILSLOW, state, [an_input(ApproveMitigation(plan_id="j1/1/validate/1"), "commands")])
    types = [type(event) for event in measured(state)]
    assert types == [NodesValidated, NodeHealthScored, MitigationPlanned]
    stopped(state)
    assert due_validations(state, AT) == {}


def test_what_stays_unknown_has_no_consequence() -> None:
    state = slow_job(AUTOMATIC)
    when_due(state)
    (validated,) = measured(state, slow=None)
    assert isinstance(validated, NodesValidated) and validated.cause == "unknown"
    assert state.mitigation.health == {}


def test_a_recovery_ends_the_plan_and_nothing_is_submitted_any_more() -> None:
    state = slow_job(AUTOMATIC)
    when_due(state)
    events = run(FAILSLOW, state, [an_input(pace(is_slow=False), "local")])
    assert [type(event) for event in events][-1] is MitigationCleared
    assert due_validations(state, AT) == {}


def test_gangs_that_do_not_use_their_nodes_alike_are_left_alone() -> None:
    state = slow_job()
    own = state.gangs["j1"]
    assert layout_of(own) is not None
    own.workers[4] = GangWorker(rank=4, node_id="n0", allocation_id="0/9/0/4")
    assert layout_of(own) is None
    del own.workers[4]
    own.gpus = 2.0
    assert layout_of(own) is None, "a half of a GPU each"


def test_the_record_of_a_submission_has_the_id_of_its_job() -> None:
    state = slow_job()
    own = OwnValidation(
        "j1/1/validate/1", "j1", "acme", 1, "j1/1/job/1", ("n0", "n1", "n2"), 8, 0.0
    )
    command = submission(state, "v1", own)
    first, again = (decode(encoded(command, "main", at_ms)) for at_ms in (1, 2))
    assert first.id == again.id and first.type == "job.submit.v1"


def test_a_job_that_may_not_be_stopped_is_not_measured() -> None:
    assert due_at(slow_job(AUTOMATIC, preemptible=False)) is None


def test_it_names_the_job_that_it_may_stop() -> None:
    state = slow_job(AUTOMATIC)
    when_due(state)
    ((job_id, own),) = due_validations(state, AT).items()
    command = submission(state, job_id, own)
    assert command.spec.measures == "j1" and decode(encoded(command, "main", 1)).pool == "main"


def test_a_tenant_has_one_measurement_at_a_time_however_often_its_jobs_start() -> None:
    state = slow_job()
    run(FAILSLOW, state, [placed("j2"), placed("j3", tenant="other")])
    for job_id in ("j2", "j3"):
        run(FAILSLOW, state, [an_input(pace(job_id=job_id), "local")])
    plans: list[Event] = []
    while (due := due_at(state)) is not None:
        plans += wake(FAILSLOW, state, due)
    assert [plan.job_id for plan in plans if isinstance(plan, MitigationPlanned)] == ["j1", "j3"]
    run(FAILSLOW, state, [an_input(pace(is_slow=False), "local")])
    assert due_at(state) is not None, "the turn of j2"


def test_one_measurement_alone_has_no_node_cordoned_without_an_operator() -> None:
    state = slow_job(AUTOMATIC)
    when_due(state)
    events = measured(state)
    assert isinstance(events[-1], MitigationPlanned), "it waits for an operator"
    assert FAILSLOW.next_wake(state) is None and not state.fleet.out_of_use
    plan = events[-1].plan_id
    (*_, applied) = run(FAILSLOW, state, [an_input(ApproveMitigation(plan_id=plan), "commands")])[
        :2
    ]
    assert isinstance(applied, MitigationApplied) and applied.by == "operator"
    state = slow_job(AUTOMATIC)
    when_due(state)
    stopped(state)
    assert not any(isinstance(event, MitigationApplied) for event in measured(state))


def test_measurements_agree_unless_one_of_them_finds_the_node_well() -> None:
    state = slow_job(AUTOMATIC)
    measured_by(state, "by-an-operator")
    measured_by(state, "by-an-operator-again", slow=None)
    when_due(state)
    stopped(state)
    assert not any(isinstance(event, MitigationApplied) for event in measured(state))


def test_a_validation_is_cancelled_when_its_plan_is_over_or_it_waits_for_too_long() -> None:
    state = slow_job(AUTOMATIC)
    when_due(state)
    ((job_id, own),) = state.validations.items()
    applied_ms = ledger_ms(state, own.applied_s)
    late_ms = applied_ms + round(VERDICT_S * 1000)
    assert due_cancels(state, applied_ms) == {} != due_cancels(state, late_ms)
    assert due_validations(state, late_ms) == {}, "it does not begin any more"
    command = cancellation(job_id, own)
    assert (command.job_id, command.tenant, command.reason) == (job_id, "acme", own.plan_id)
    fold(FAILSLOW, state, [watched(gang(job_id).model_copy(update={"validates": True}))])
    assert due_cancels(state, late_ms) == {}, "it runs"
    state = slow_job(AUTOMATIC)
    when_due(state)
    run(FAILSLOW, state, [an_input(pace(is_slow=False), "local")])
    assert list(due_cancels(state, applied_ms)) == [job_id]
