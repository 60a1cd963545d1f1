"""The fold of the placement ledger for nodes with an agent."""

from __future__ import annotations

from services.executor.core.agents.state import (
    LOST_KEPT,
    UNKNOWN_WRITER,
    WRITERS_KEPT,
    OrderPosition,
)
from shared.contracts.admission import ArrayEnded
from shared.contracts.array_programs import without_program
from shared.contracts.attempts import AllocationReleased, JobStopRequested, JobSucceeded
from shared.contracts.nodes import NodeLost
from shared.contracts.placement import ArrayProgramNoted
from tests.services.executor.core.agents.history import (
    ENQUEUED,
    OTHER_UUID,
    PLACED,
    POOL,
    SPEC,
    STARTED,
    UUID,
    History,
    allocation,
    joined,
    running,
)

STOP = JobStopRequested(job_id="j", tenant="ada", attempt=1, reason="cancelled")


def released(rank: int) -> AllocationReleased:
    return AllocationReleased(
        job_id="j",
        tenant="ada",
        attempt=1,
        allocation_id=allocation(rank),
        node_id="n1",
        reason="exited",
        exit_code=0,
    )


def test_each_fact_names_the_nodes_that_have_new_orders() -> None:
    history = History(POOL, joined("n2"), ENQUEUED)
    assert history.add(joined("n1")) == {"n1"}
    assert history.add(PLACED) == {"n1", "n2"}
    assert history.add(STARTED) == {"n1", "n2"}
    assert history.add(STOP) == {"n1", "n2"}
    assert history.add(STOP) == set()


def test_nodes_of_another_backend_are_left_to_their_executor() -> None:
    history = History(POOL, joined("n1"), joined("n2", backend="virtual"), ENQUEUED, PLACED)
    assert {worker.node_id for worker in history.state.workers.values()} == {"n1"}
    assert history.state.workers[allocation(1)].launch.master_addr == "n2.example"


def test_a_released_worker_is_gone_and_remembered_for_its_forget() -> None:
    history = running()
    assert history.add(released(1), JobSucceeded(job_id="j", tenant="ada", attempt=1)) == {"n1"}
    assert allocation(1) not in history.state.workers
    assert history.state.nodes["n1"].released[-1].allocation_id == allocation(1)
    assert history.state.of_job["j"] == [allocation(0), allocation(2)]
    assert history.add(released(1)) == set()


def test_the_source_of_output_is_known_beyond_the_release() -> None:
    history = running()
    source = history.state.source_of("n1", allocation(1))
    assert source is not None
    assert source[:4] == ("j", "ada", 1, 1)
    assert source.series
    history.add(released(1))
    assert history.state.source_of("n1", allocation(1)) == source
    assert history.state.source_of("n2", allocation(1)) is None
    assert history.state.source_of("n9", allocation(1)) is None


def test_a_new_incarnation_takes_over_what_is_not_released_yet() -> None:
    history = running()
    history.add(joined("n1", OTHER_UUID, generation=2))
    node = history.state.nodes["n1"]
    assert (node.incarnation, node.generation) == (OTHER_UUID, 2)
    assert {worker.incarnation for worker in node.workers.values()} == {UUID}


def test_only_the_loss_of_the_present_incarnation_counts() -> None:
    history = running()
    assert history.add(NodeLost(node_id="n1", incarnation=OTHER_UUID, reason="silent")) == set()
    assert history.add(NodeLost(node_id="n1", incarnation=UUID, reason="silent")) == {"n1"}
    assert history.state.nodes["n1"].fenced


def test_a_change_of_the_terms_concerns_every_node() -> None:
    history = running()
    assert history.add(POOL.model_copy(update={"round_ms": 5})) == set()
    assert history.add(POOL.model_copy(update={"stop_after_s": 60.0})) == {"n1", "n2"}
    terms = history.state.agent_terms()
    assert terms is not None and terms.stop_after_s == 60


def test_a_record_is_folded_as_a_whole() -> None:
    history = running()
    assert history.state.through > OrderPosition.of_event(6, 0, 4095)
    assert history.state.through < OrderPosition.of_event(7, 0)


def lost(node_id: str, **fields: str) -> NodeLost:
    return NodeLost.model_validate(
        {"node_id": node_id, "incarnation": UUID, "reason": "silent", **fields}
    )


def test_of_nodes_that_were_lost_long_ago_the_generation_alone_is_remembered() -> None:
    history = running()
    for rank in (1, 2):
        history.add(released(rank))
    history.add(lost("n1"))
    history.add(lost("n2"))
    names = [f"m{number}" for number in range(LOST_KEPT)]
    for name in names:
        history.add(joined(name, generation=7))
        history.add(lost(name))
    state = history.state
    assert not state.nodes["n1"].released and "n1" not in state.addresses
    assert state.nodes["n1"].generation == 1
    # A worker of the other one is not released yet.
    assert allocation(0) in state.nodes["n2"].workers and "n2" in state.addresses
    assert all(name in state.addresses for name in names)
    history.add(joined("m0", OTHER_UUID, generation=8))
    assert "m0" not in state.lost
    history.add(joined("n1", OTHER_UUID, generation=9))
    assert state.addresses["n1"] == "n1.example" and state.nodes["n1"].lost is None


def test_the_latest_writers_of_the_ledger_are_known() -> None:
    history = running()
    for number in range(WRITERS_KEPT + 2):
        history.writer = f"after-{number}"
        history.add()
        history.add()
    writers = history.state.writers
    assert len(writers) == WRITERS_KEPT
    assert history.state.writer_of(history.seq) == f"after-{WRITERS_KEPT + 1}"
    assert history.state.writer_of(writers[0][0]) == "after-2"
    assert history.state.writer_of(writers[0][0] - 1) == UNKNOWN_WRITER


def test_jobs_of_an_array_run_its_program_that_is_recorded_once() -> None:
    bare = without_program(SPEC)
    program = ArrayProgramNoted(job_id="a", tenant="ada", command=SPEC.command, env=SPEC.env)
    job = ENQUEUED.model_copy(update={"job_id": "a.4", "array_index": 4, "spec": bare})
    history = History(POOL, joined("n1"), joined("n2"), program, job)
    history.add(PLACED.model_copy(update={"job_id": "a.4"}))
    launch = history.state.workers["1/6/0/1"].launch
    assert (launch.command, launch.env) == (SPEC.command, SPEC.env)
    history.add(ArrayEnded(job_id="a", tenant="ada"))
    assert history.state.programs == {}


def test_a_worker_is_the_pod_of_its_rank_where_the_job_has_pods() -> None:
    uids = tuple(f"00000000-0000-0000-0000-00000000000{rank}" for rank in range(3))
    enqueued = ENQUEUED.model_copy(update={"spec": SPEC.model_copy(update={"pods": uids})})
    history = History(POOL, joined("n1"), joined("n2"), enqueued, PLACED)
    workers = history.state.workers
    assert tuple(workers[allocation(rank)].pod for rank in range(3)) == uids
    assert not any(worker.pod for worker in running().state.workers.values())
