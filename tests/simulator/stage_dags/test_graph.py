from __future__ import annotations

from simulator.stage_dags.graph import graph_of, heights_of
from simulator.stage_dags.world import OpenJob
from tests.simulator.stage_dags.stage_samples import job, plain

DIAMOND = job(plain(1), plain(1, parents=(0,)), plain(1, parents=(0,)), plain(1, parents=(1, 2)))


def test_heights_are_of_the_longest_way_to_the_end() -> None:
    assert heights_of(DIAMOND) == [2, 1, 1, 0]
    assert heights_of(job(plain(1), plain(1, parents=(0,)), plain(1, parents=(0, 1)))) == [2, 1, 0]


def test_rows_begin_with_the_last_stages() -> None:
    graph = graph_of([OpenJob(0, DIAMOND), OpenJob(1, job(plain(1)))])
    assert graph.row_of.tolist() == [4, 2, 3, 0, 1]
    assert [(first, end) for first, end, _ in graph.levels] == [(0, 2), (2, 4), (4, 5)]
    assert graph.levels[1].children.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert graph.levels[2].children.tolist() == [[0.0, 0.0, 1.0, 1.0]]
    assert graph.members.sum(axis=1).tolist() == [4.0, 1.0]
    assert graph.by_row([[1, 2, 3, 4], [5]]).tolist() == [4.0, 5.0, 2.0, 3.0, 1.0]
