"""What a batch says is what its inputs say one by one, and what a job has to show of its runs."""

from __future__ import annotations

from typing import Any

from hypothesis import given as for_all
from hypothesis import strategies as st

from services.priority.core.state import Queue
from shared.contracts.nodes import NodeLost
from shared.contracts.placement import (
    Allocation,
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobRequeued,
)
from shared.contracts.ranking import QueueChanged
from shared.ledger.decider import Input
from shared.testing.decider import AT, given, run
from tests.services.priority.core.lane import (
    PRIORITY,
    admitted,
    node,
    only,
    placed,
    pool,
    running,
    said,
    started,
    stopped,
    succeeded,
)

RUNS = ("kept_ms", "ran_ms", "restarts", "go_ms", "since_ms", "held_gpus")
SAVES: dict[str, Any] = {
    "checkpoint_interval_s": 60.0,
    "simulated": {"duration_s": 1e6, "restart_s": 20.0},
}


def shown(state: Queue, job: str) -> dict[str, float]:
    return {name: state.table.get(state.jobs[job].row, name) for name in RUNS}


def test_attained_time_counts_over_attempts_and_kept_work_by_checkpoints() -> None:
    state = given(PRIORITY, pool(time_scale=10))
    run(PRIORITY, state, [admitted("a", **SAVES), placed("a"), started("a", AT + 1000)], AT + 1000)
    run(PRIORITY, state, stopped("a", AT + 21_000), AT + 21_000)
    # 200 cluster s of work: three whole minutes are kept, 18 s of the wall.
    assert shown(state, "a") == {
        "kept_ms": 18_000,
        "ran_ms": 20_000,
        "restarts": 1,
        "go_ms": 0,
        "since_ms": 0,
        "held_gpus": 0,
    }
    run(PRIORITY, state, running("a", at=AT + 30_000), AT + 30_000)
    view = state.view(AT + 31_000)
    assert (view.kept_s[0], view.since_go_s[0], view.attained_s[0]) == (180.0, 10.0, 190.0)


def test_a_job_that_makes_no_checkpoints_begins_anew() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a"), *running("a")])
    run(PRIORITY, state, stopped("a", AT + 500_000), AT + 500_000)
    assert shown(state, "a")["kept_ms"] == 0 and shown(state, "a")["ran_ms"] == 500_000


def test_a_job_that_moves_keeps_its_work_like_one_that_is_stopped() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a", **SAVES), *running("a")])
    move = JobMigrated(
        job_id="a",
        tenant="red",
        attempt=1,
        reason="balance",
        from_nodes=("n",),
        to_nodes=("m",),
        target=(Allocation(rank=0, node_id="m", gpus=(0,)),),
    )
    again = JobRequeued(job_id="a", tenant="red", attempt=2, reason="migrated")
    run(PRIORITY, state, [said(move, AT + 130_000)], AT + 130_000)
    run(PRIORITY, state, [said(again, AT + 133_000)], AT + 133_000)
    assert shown(state, "a")["kept_ms"] == 120_000 and shown(state, "a")["ran_ms"] == 130_000


def test_a_failed_attempt_saves_nothing() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a", **SAVES), *running("a")])
    failed = JobAttemptFailed(job_id="a", tenant="red", attempt=1, reason="exit_code")
    run(PRIORITY, state, [said(failed, AT + 130_000)], AT + 130_000)
    assert shown(state, "a")["kept_ms"] == 0 and shown(state, "a")["restarts"] == 0


def test_history_learns_useful_work_of_every_end_that_ran() -> None:
    state = given(PRIORITY, pool())
    jobs = [admitted(name, **SAVES) for name in ("a", "b", "c", "d")]
    run(PRIORITY, state, [*jobs, *running("a"), *running("b"), *running("c")])
    run(PRIORITY, state, stopped("a", AT + 130_000), AT + 130_000)
    run(PRIORITY, state, running("a", at=AT + 200_000), AT + 200_000)
    at = AT + 250_000
    ends = [
        succeeded("a", at),
        said(JobFailed(job_id="b", tenant="red", attempt=1, reason="exit_code"), at),
        said(JobCancelled(job_id="c", tenant="red", attempt=1), at),
        said(JobCancelled(job_id="d", tenant="red"), at),
    ]
    note = only(run(PRIORITY, state, ends, at), QueueChanged)
    # a: 120 s kept, then 50 s less the restart of 20.
    assert [(end.job_id, end.ran_s, end.succeeded) for end in note.finished] == [
        ("a", 150.0, True),
        ("b", 250.0, False),
        ("c", 250.0, False),
    ]
    assert state.accuracy.samples == 3


def test_what_ended_is_learnt_before_what_entered_is_estimated() -> None:
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
        [said(NodeLost(node_id="a", incarnation="1", reason="silent")), node("b", 6)],
    )
    assert state.capacity_gpus == 6


MOVES = st.lists(
    st.tuples(st.sampled_from(["place", "go", "stop", "fail", "end"]), st.integers(0, 2)),
    max_size=30,
)
FOLLOWS = {"idle": {"place"}, "placed": {"go", "stop", "end"}, "working": {"stop", "fail", "end"}}


def lives(moves: list[tuple[str, int]]) -> list[tuple[int, list[Input]]]:
    """Those of the moves that can happen, a second apart."""
    phase = dict.fromkeys(range(3), "idle")
    found: list[tuple[int, list[Input]]] = [(AT, [admitted(f"j{n}", **SAVES) for n in range(3)])]
    for step, (move, number) in enumerate(moves):
        if move not in FOLLOWS.get(phase[number], ()):
            continue
        at, job = AT + 37_000 * (step + 1), f"j{number}"
        failed = JobAttemptFailed(job_id=job, tenant="red", attempt=1, reason="exit_code")
        again = JobRequeued(job_id=job, tenant="red", attempt=2, reason="preempted")
        inputs = {
            "place": [placed(job, at=at)],
            "go": [started(job, at)],
            "stop": stopped(job, at),
            "fail": [said(failed, at), said(again, at)],
            "end": [succeeded(job, at)],
        }[move]
        after = {"place": "placed", "go": "working", "stop": "idle", "fail": "idle", "end": "gone"}
        phase[number] = after[move]
        found.append((at, inputs))
    return found


@for_all(MOVES)
def test_a_batch_says_what_its_inputs_say_one_by_one(moves: list[tuple[str, int]]) -> None:
    steps = lives(moves)
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
        assert shown(apart, job) == shown(together, job)
