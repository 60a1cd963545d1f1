"""A slow worker computes slowly where its own work is longer than its peers'; else unknown."""

from __future__ import annotations

from services.failslow.core.diagnosis.verdict import UNKNOWN, Diagnosis
from services.failslow.core.diagnosis.worker import NO_OWN_WORK, ON_CPUS, cause_of_process
from shared.contracts.reports import IterationTimes

NODES = {0: "a", 1: "a", 2: "b", 3: "b"}


def row(rank: int, own_s: float, stage: int | None = None) -> IterationTimes:
    return IterationTimes(
        job_id="j1",
        allocation_id=f"0/9/0/{rank}",
        node_id=NODES.get(rank, "c"),
        rank=rank,
        iteration_s=(9.0,) * 4,
        own_s=(7.0, own_s, own_s, own_s),
        layout={} if stage is None else {"dp": rank, "pp": stage},
    )


def cause(*rows: IterationTimes, rank: int = 2) -> Diagnosis:
    return cause_of_process({row.rank: row for row in rows}, NODES, rank, reports=3)


def test_one_slow_worker_is_its_gpu() -> None:
    diagnosis = cause(row(0, 1.0), row(1, 1.01), row(2, 1.5), row(3, 0.99))
    assert diagnosis.cause == "compute"
    assert (diagnosis.suspects[0].kind, diagnosis.suspects[0].node_ids) == ("gpu", ("b",))
    assert diagnosis.evidence[0].startswith("gpu of rank 2: 1.49 times the median of its peers")
    assert 0.5 < diagnosis.confidence < 1


def test_a_process_with_several_gpus_or_none_names_no_gpu() -> None:
    rows = {rank: row(rank, 1.5 if rank == 2 else 1.0) for rank in range(4)}
    for gpus in (0.0, 8.0):
        diagnosis = cause_of_process(rows, NODES, 2, 3, gpus)
        assert (diagnosis.cause, diagnosis.suspects[0].kind) == ("compute", "")
        assert diagnosis.evidence[0].startswith("rank 2: 1.50 times the median of its peers")


def test_a_training_on_cpus_names_no_gpu() -> None:
    """It reports its wait for a processor, also where that is zero."""
    rows = [row(rank, 1.5 if rank == 2 else 1.0) for rank in range(4)]
    diagnosis = cause(*(own.model_copy(update={"delay_s": (0.0,) * 4}) for own in rows))
    assert (diagnosis.cause, diagnosis.suspects[0].kind) == ("compute", "")
    assert diagnosis.evidence[-1] == ON_CPUS


def test_all_workers_of_a_node_are_the_node() -> None:
    more = [row(rank, 1.0) for rank in (4, 5, 6)]
    nodes = NODES | {4: "c", 5: "c", 6: "d"}
    rows = (row(0, 1.0), row(1, 1.0), row(2, 1.5), row(3, 1.6), *more)
    diagnosis = cause_of_process({row.rank: row for row in rows}, nodes, 3, reports=3)
    assert (diagnosis.suspects[0].kind, diagnosis.suspects[0].ranks) == ("node", (2, 3))


def test_stages_are_compared_with_their_like() -> None:
    rows = (*(row(rank, 1.0, 0) for rank in (0, 1, 4)), *(row(rank, 2.0, 1) for rank in (2, 3, 5)))
    assert cause(*rows) == UNKNOWN


def test_a_pair_does_not_show_which_one_deviates() -> None:
    assert cause(row(0, 1.0), row(2, 2.0)) == UNKNOWN


def test_whole_iterations_show_no_cause() -> None:
    rows = [row(rank, 1.0).model_copy(update={"own_s": ()}) for rank in range(4)]
    assert cause(*rows) == NO_OWN_WORK
