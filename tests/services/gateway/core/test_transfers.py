"""A transfer is proposed only where the gang, its pause and its tenant's quota all fit."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from services.gateway.core.transfers import (
    PAUSE_MOST_MS,
    PAUSE_MS,
    Room,
    WaitingJob,
    pause_ms,
    proposals,
    transferred_spec,
)
from shared.contracts.gang_needs import NodeKind, kind_of, shape_of
from shared.contracts.job_spec import JobSpec
from shared.contracts.transfers import TransferTarget

NOW = 1_000_000


def spec_of(gpus: float = 1.0, workers: int = 1, **more: object) -> JobSpec:
    gang = {"workers": workers, "gpus_per_worker": gpus}
    return JobSpec.model_validate({"name": "j", "gang": gang, "pools": ("a", "b"), **more})


def waiting(
    job_id: str, gpus: float = 1.0, workers: int = 1, since_ms: int = 0, transfers: int = 0
) -> WaitingJob:
    spec = spec_of(gpus, workers)
    shape = shape_of(spec)
    return WaitingJob(job_id, "t", "a", ("b",), shape, spec.gang.gpus, False, since_ms, transfers)


def node(gpus: int, cpus: float = 64) -> NodeKind:
    return kind_of("h100", gpus, cpus, 512, {})


def proposed(jobs: list[WaitingJob], *nodes: NodeKind, **quota: float) -> list[str]:
    return [one.job_id for one in proposals(jobs, {"b": Room([*nodes], quota)}, NOW)]


@pytest.mark.parametrize(
    ("job", "nodes"),
    [
        (waiting("j", 8), [node(7), node(7)]),
        (waiting("j", 4, 3), [node(8)]),
        (waiting("j"), [node(8, cpus=0.5)]),
        (waiting("j", since_ms=NOW - PAUSE_MS + 1), [node(8)]),
        (waiting("j", since_ms=NOW - PAUSE_MS, transfers=1), [node(8)]),
    ],
    ids=["node too small", "gang too large", "no cores", "waited too short", "after a transfer"],
)
def test_a_job_stays_where_another_pool_would_not_start_it(
    job: WaitingJob, nodes: list[NodeKind]
) -> None:
    assert proposed([job], *nodes) == []


def test_who_waited_longest_goes_first_and_room_is_given_once() -> None:
    jobs = [waiting("late", 8, since_ms=9), waiting("early", 8, since_ms=1), waiting("small", 0.5)]
    assert proposed(jobs, node(8)) == ["small"]
    assert proposed(jobs, node(8), node(8)) == ["small", "early"]
    assert proposed([waiting("gang", 8, 2)], node(8), node(8)) == ["gang"]


def test_the_quota_of_the_tenant_in_the_other_pool_bounds_its_jobs() -> None:
    jobs = [waiting(f"j{index}", 2) for index in range(3)]
    assert proposed(jobs, node(8), t=4.0) == ["j0", "j1"]
    assert proposed(jobs, node(8), other=0.0) == ["j0", "j1", "j2"]


def test_the_gpus_of_the_user_in_the_other_pool_bound_its_jobs() -> None:
    jobs = [waiting(f"j{index}", 2)._replace(user="ada", spot=index == 0) for index in range(3)]
    others = [
        waiting("o", 2)._replace(user="bob"),
        waiting("x", 2)._replace(tenant="u", user="ada"),
    ]
    room = Room([node(8), node(8)], {}, {("t", "ada"): 4.0})
    made = proposals([*jobs, *others], {"b": room}, NOW)
    assert [one.job_id for one in made] == ["j0", "j1", "o", "x"]


def test_pools_with_waiting_jobs_have_no_room() -> None:
    assert list(proposals([waiting("j")], {}, NOW)) == []


@examples(
    st.lists(st.tuples(st.sampled_from([0.25, 1.0, 2.0, 8.0]), st.integers(1, 4)), max_size=12),
    st.lists(st.integers(0, 8), max_size=4),
)
def test_no_more_gpus_are_given_than_are_free(
    jobs: list[tuple[float, int]], free: list[int]
) -> None:
    made = [waiting(f"j{number}", *size) for number, size in enumerate(jobs)]
    room = Room([node(gpus) for gpus in free])
    gone = {one.job_id for one in proposals(made, {"b": room}, NOW)}
    assert sum(job.gpus for job in made if job.job_id in gone) <= sum(free)
    assert all(left.gpus >= 0 and left.cpu_milli >= 0 for left in room.nodes)


def test_pauses_double_up_to_a_bound() -> None:
    assert [pause_ms(number) for number in (0, 1, 2, 50)] == [
        PAUSE_MS,
        2 * PAUSE_MS,
        4 * PAUSE_MS,
        PAUSE_MOST_MS,
    ]


def test_the_first_id_and_the_number_of_transfers_go_along_a_chain() -> None:
    target = TransferTarget(pool="b", job_id="j2", failures=1, resumes=True, done_s=3.0)
    first = transferred_spec(spec_of(depends_on=("d",)), "j1", "a", target)
    second = transferred_spec(first, "j2", "b", target).transferred
    assert first.depends_on == ()
    assert second is not None
    assert (second.from_job_id, second.first_job_id, second.transfers) == ("j2", "j1", 2)
    assert (second.from_pool, second.failures, second.done_s) == ("b", 1, 3.0)
