"""Packing by fragments: parts of GPUs go where the rest stays of use."""

from __future__ import annotations

import pytest

from services.placement.core.gpu_parts.demand import Demand
from services.placement.core.gpu_parts.scores import FragmentationDescent, LargestNode
from services.placement.core.pool.shape import shape_of
from services.placement.core.pool.trial import Trial
from services.placement.core.round import fragments
from services.placement.core.round.fragments import FragmentPacking
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import Lane, job, lane, only


def parts(**settings: object) -> Lane:
    """Two nodes; on each a part of one GPU is in use, and the usual worker needs 0.7."""
    pool = lane("a", "b", gpus=2, **settings)
    for name in ("warm-1", "warm-2", "warm-3"):
        pool.run(job(name, 0.7))
        pool.exited(name)
    return pool


def test_workers_teach_their_needs_where_the_pool_packs_by_fragments() -> None:
    assert sum(parts(packing="fragments").state.recent_needs.counts.values()) == 3
    assert sum(parts().state.recent_needs.counts.values()) == 0


def test_the_event_names_the_packing() -> None:
    pool = lane("a", gpus=2, packing="fragments")
    (placed,) = only(JobPlaced, pool.submit(job("part", 0.5)))
    assert placed.policy == "class_submit+fragments"


def test_a_gpu_with_a_useless_rest_is_taken_before_one_with_a_useful_rest() -> None:
    """Workers of 0.4 are usual: a GPU with 0.4 free serves one, and one with 0.5 free does so
    after a worker of 0.1 too. Best fit takes the fullest GPU, and leaves 0.3 there.
    """
    left: dict[str, list[int]] = {}
    for packing in ("best_fit", "fragments"):
        pool = lane("a", gpus=2, packing=packing)
        for n in range(20):
            pool.run(job(f"warm-{n}", 0.4))
            pool.exited(f"warm-{n}")
        pool.run(job("x", 0.6))
        pool.run(job("y", 0.5))
        pool.run(job("small", 0.1))
        left[packing] = sorted(pool.free("a"))
    assert left == {"best_fit": [300, 500], "fragments": [400, 400]}


def test_the_table_follows_what_a_trial_takes_back() -> None:
    pool = lane("a", "b", gpus=2, packing="fragments")
    need = shape_of(job("part", 0.5).spec)
    packing = FragmentPacking({need: 1})
    with Trial(pool.state.board) as trial:
        first = packing.place(trial, need, ())
        mark = len(trial.log)
        second = packing.place(trial, need, ())
        trial.rollback(mark)
        again = packing.place(trial, need, ())
    assert first[0].gpus == second[0].gpus, "the second half of the same GPU"
    assert again == second


def test_a_node_is_judged_by_a_bounded_number_of_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by: list[int] = []

    def descent(demand: Demand, largest: LargestNode) -> FragmentationDescent:
        judged_by.append(len(demand.classes))
        return FragmentationDescent(demand, largest)

    monkeypatch.setattr(fragments, "FragmentationDescent", descent)
    need = shape_of(job("part", 0.5).spec)
    counts = {need._replace(cpu_milli=number): 1 for number in range(2000)}
    with Trial(lane("a", gpus=2).state.board) as trial:
        FragmentPacking(counts).place(trial, need, ())
    assert judged_by == [fragments.MOST_CLASSES]


def test_a_gang_of_parts_is_placed_whole_or_not_at_all() -> None:
    pool = lane("a", gpus=1, packing="fragments")
    assert only(JobPlaced, pool.submit(job("gang", 0.4, workers=3))) == []
    assert len(only(JobPlaced, pool.submit(job("pair", 0.4, workers=2), after_ms=200))) == 1
