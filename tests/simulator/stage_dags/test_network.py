"""Decima's network: its messages by hand, and the heuristic that it begins as."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.stage_dags import network
from simulator.stage_dags.graph import Floats, graph_of
from simulator.stage_dags.jobs import Draws, drawn_jobs
from simulator.stage_dags.network import (
    SUMMARY,
    Matrix,
    by_network,
    embeddings,
    first_weights,
    layers_of,
    size,
)
from simulator.stage_dags.network_weights import WEIGHTS
from simulator.stage_dags.picks import weighted_fair
from simulator.stage_dags.world import Choice, Executors, OpenJob, Situation, StageWorld
from tests.simulator.stage_dags.stage_samples import job, plain

DIAMOND = job(plain(1), plain(1, parents=(0,)), plain(1, parents=(0,)), plain(1, parents=(1, 2)))


def test_the_weights_that_ship_are_those_of_the_network() -> None:
    assert len(WEIGHTS.split()) == size() == 694


def test_messages_add_up_along_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """With networks that return their inputs a stage has the sum over all paths to the end."""

    def same(layers: tuple[Matrix, Matrix], rows: Floats) -> Floats:
        return rows[:, :SUMMARY].copy()

    monkeypatch.setattr(network, "applied", same)
    graph = graph_of([OpenJob(0, DIAMOND)])
    layers = layers_of(np.zeros(size()))
    known = embeddings(layers, graph, np.ones((4, 5)), np.ones(4))
    assert known[graph.row_of, 0].tolist() == [5.0, 2.0, 2.0, 1.0]
    # The last stage has ended.
    is_open = np.array([0.0, 1.0, 1.0, 1.0])
    known = embeddings(layers, graph, np.ones((4, 5)), is_open)
    assert known[graph.row_of, 0].tolist() == [3.0, 1.0, 1.0, 1.0]


def test_the_first_weights_decide_nearly_as_the_heuristic() -> None:
    start = by_network(first_weights(np.random.default_rng(0)), 0.0)
    jobs = drawn_jobs(Draws(7, 20))
    ours = StageWorld(jobs, start, Executors()).run().mean_jct_s()
    base = StageWorld(jobs, weighted_fair(0.0, False), Executors()).run().mean_jct_s()
    assert ours == pytest.approx(base, rel=0.1)


def test_a_decision_does_not_depend_on_the_order_of_jobs() -> None:
    pick = by_network(first_weights(np.random.default_rng(1)) + 0.1, 0.0)
    jobs = [OpenJob(number, own) for number, own in enumerate(drawn_jobs(Draws(5, 6)))]
    first = pick(Situation(jobs, 20, 20))
    assert first == pick(Situation(jobs[::-1], 20, 20))
    assert isinstance(first, Choice)
    assert first.limit > first.job.busy


def test_executors_stay_idle_where_no_stage_scores_above_zero() -> None:
    """The job has its whole share; with nothing running one is taken all the same."""
    pick = by_network(first_weights(np.random.default_rng(0)), 0.0)
    full = OpenJob(0, job(plain(30)))
    full.working = 20
    assert pick(Situation([full], 20, 1)) is None
    blocked = by_network(np.zeros(size()) - 100.0, 0.0)
    assert blocked(Situation([OpenJob(0, job(plain(30)))], 20, 20)) is not None
