"""Changes of a batch are those of its inputs one by one; totals of a job's runs."""

from __future__ import annotations

from typing import Any

from hypothesis import given as for_all
from hypothesis import strategies as st

from services.priority.core.state import PriorityState
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobProgressed,
    JobRequeued,
)
from shared.contracts.nodes import NodeLost
from shared.contracts.placement import Allocation
from shared.contracts.ranking import QueueChanged
from shared.ledger.decider import Input
from tests.harness.decider import AT, given, run
from tests.services.priority.core.lane import (
    PRIORITY,
    admitted,
    from_placement,
    node,
    only,
    placed,
    pool,
    running,
    started,
    stopped,
    succeeded,
)

RUNS = ("kept_ms", "ran_ms", "restarts", "go_ms", "since_ms", "held_gpus")
SAVES: dict[str, Any] = {
    "checkpoint_interval_s": 60.0,
    "simulated": {"duration_s": 1e6, "restart_s": 20.0},
}


def totals(state: PriorityState, job: str) -> dict[str, float]:
    return {name: state.table.get(state.jobs[job].row, name) for name in RUNS}


def test_attained_time_counts_over_attempts_and_kept_work_by_checkpoints() -> None:
    state = given(PRIORITY, pool(time_scale=10))
    run(PRIORITY, state, [admitted("a", **SAVES), placed("a"), started("a", AT + 1000)], AT + 1000)
    run(PRIORITY, state, stopped("a", AT + 21_000), AT + 21_000)
    # 200 cluster s of work: three whole minutes are kept, 18 s of wall time.
    assert totals(state, "a") == {
        "kept_ms": 18_000,
        "ran_ms": 20_000,
        "restarts": 1,
        "go_ms": 0,
        "since_ms": 0,
        "held_gpus": 0,
    }
    run(PRIORITY, state, running("a", at=AT + 30_000), AT + 30_000)
    view = state.view(AT + 31_000)
    assert (view.kept_s[0], view.since_go_s[0], view.attained_s[0]) == (180.0, 10.0, 180.0)
    view = state.view(AT + 33_000)
    assert (view.since_go_s[0], view.attained_s[0]) == (30.0, 190.0), "a restart is no work"


def test_a_job_without_checkpoints_begins_anew() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a"), *running("a")])
    run(PRIORITY, state, stopped("a", AT + 500_000), AT + 500_000)
    assert totals(state, "a")["kept_ms"] == 0 and totals(state, "a")["ran_ms"] == 500_000


def test_a_migrated_job_keeps_its_work_like_a_preempted_one() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a", **SAVES), *running("a")])
    migrated = JobMigrated(
        job_id="a",
        tenant="red",
        attempt=1,
        reason="balance",
        from_nodes=("n",),
        to_nodes=("m",),
        target=(Allocation(rank=0, node_id="m", gpus=(0,)),),
    )
    again = JobRequeued(job_id="a", tenant="red", attempt=2, reason="migrated")
    run(PRIORITY, state, [from_placement(migrated, AT + 130_000)], AT + 130_000)
    run(PRIORITY, state, [from_placement(again, AT + 133_000)], AT + 133_000)
    assert totals(state, "a")["kept_ms"] == 120_000 and totals(state, "a")["ran_ms"] == 130_000


def test_a_failed_attempt_saves_nothing() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a", **SAVES), *running("a")])
    failed = JobAttemptFailed(job_id="a", tenant="red", attempt=1, reason="exit_code")
    run(PRIORITY, state, [from_placement(failed, AT + 130_000)], AT + 130_000)
    assert totals(state, "a")["kept_ms"] == 0 and totals(state, "a")["restarts"] == 0


def test_history_learns_useful_work_of_every_end_that_ran() -> None:
    state = given(PRIORITY, pool())
    jobs = [admitted(name, **SAVES) for name in ("a", "b", "c", "d")]
    run(PRIORITY, state, [*jobs, *running("a"), *running("b"), *running("c")])
    run(PRIORITY, state, stopped("a", AT + 130_000), AT + 130_000)
    run(PRIORITY, state, running("a", at=AT + 200_000), AT + 200_000)
    at = AT + 250_000
    ends = [
        succeeded("a", at),
        from_placement(JobFailed(job_id="b", tenant="red", attempt=1, reason="exit_code"), at),
        from_placement(JobCancelled(job_id="c", tenant="red", attempt=1), at),
        from_placement(JobCancelled(job_id="d", tenant="red"), at),
    ]
    changed = only(run(PRIORITY, state, ends, at), QueueChanged)
    # a: 120 s kept, then 50 s less the restart of 20.
    assert [(end.job_id, end.ran_s, end.succeeded) for end in changed.finished] == [
        ("a", 150.0, True),
        ("b", 250.0, False),
        ("c", 250.0, False),
    ]
    assert state.accuracy.samples == 3


def test_ended_jobs_are_learnt_before_entered_ones_are_estimated() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a", name="x"), *running("a")])
    at = AT + 4000
    run(PRIORITY, state, [admitted("b", name="x"), succeeded("a", at)], at)
    row = state.jobs["b"].row
    assert state.table.get(row, "samples") == 1.0


def test_a_pools_capacity_follows_its_nodes() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [node("a", 8), node("b", 4)])
    assert state.capacity_gpus == 12
    run(
        PRIORITY,
        state,
        [from_placement(NodeLost(node_id="a", incarnation="1", reason="silent")), node("b", 6)],
    )
    assert state.capacity_gpus == 6


STEPS = st.lists(
    st.tuples(st.sampled_from(["place", "start", "stop", "fail", "end"]), st.integers(0, 2)),
    max_size=30,
)
FOLLOWS = {
    "idle": {"place"},
    "placed": {"start", "stop", "end"},
    "working": {"stop", "fail", "end"},
}


def possible_steps(choices: list[tuple[str, int]]) -> list[tuple[int, list[Input]]]:
    """Return those of the steps that can happen, 37 s apart."""
    phase = dict.fromkeys(range(3), "idle")
    steps: list[tuple[int, list[Input]]] = [(AT, [admitted(f"j{n}", **SAVES) for n in range(3)])]
    for step, (kind, number) in enumerate(choices):
        if kind not in FOLLOWS.get(phase[number], ()):
            continue
        at, job = AT + 37_000 * (step + 1), f"j{number}"
        failed = JobAttemptFailed(job_id=job, tenant="red", attempt=1, reason="exit_code")
        again = JobRequeued(job_id=job, tenant="red", attempt=2, reason="preempted")
        inputs = {
            "place": [placed(job, at=at)],
            "start": [started(job, at)],
            "stop": stopped(job, at),
            "fail": [from_placement(failed, at), from_placement(again, at)],
            "end": [succeeded(job, at)],
        }[kind]
        after = {
            "place": "placed",
            "start": "working",
            "stop": "idle",
            "fail": "idle",
            "end": "gone",
        }
        phase[number] = after[kind]
        steps.append((at, inputs))
    return steps


@for_all(STEPS)
def test_a_batch_has_the_effect_of_its_inputs_one_by_one(choices: list[tuple[str, int]]) -> None:
    steps = possible_steps(choices)
    apart, together = given(PRIORITY, pool()), given(PRIORITY, pool())
    for at, inputs in steps:
        run(PRIORITY, apart, inputs, at)
    first, *rest = steps
    run(PRIORITY, together, first[1], AT)
    run(PRIORITY, together, [item for _, inputs in rest for item in inputs], steps[-1][0])
    assert apart.jobs.keys() == together.jobs.keys()
    assert apart.waiting.keys() == together.waiting.keys()
    for job, known in apart.jobs.items():
        assert known.phase == together.jobs[job].phase
        assert totals(apart, job) == totals(together, job)


def progressed(ends_at: int) -> Input:
    return from_placement(
        JobProgressed(job_id="a", tenant="red", attempt=1, step=1, steps_total=2, ends_at=ends_at),
        AT,
    )


def test_a_reported_end_holds_until_the_job_stops_or_starts_again() -> None:
    def ends_ms(*more: Input) -> float:
        state = given(PRIORITY, pool())
        run(PRIORITY, state, [admitted("a"), *running("a")])
        run(PRIORITY, state, [progressed(AT + 5000)])
        run(PRIORITY, state, [*more])
        return state.table.get(state.jobs["a"].row, "ends_ms")

    assert ends_ms() == AT + 5000
    assert ends_ms(progressed(AT + 9000)) == AT + 9000
    assert ends_ms(*stopped("a", AT + 1000)) == 0
    assert ends_ms(progressed(AT + 9000), *stopped("a", AT + 1000)) == 0
    assert ends_ms(*stopped("a", AT + 1000), *running("a", at=AT + 2000)) == 0
