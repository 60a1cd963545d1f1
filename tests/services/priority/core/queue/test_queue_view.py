"""Columns of a view: cluster seconds from the pool's first job."""

from __future__ import annotations

import numpy as np

from services.priority.core.queue.queue_view import NO_ROWS, ids_and_scores
from shared.contracts.ranking import Started, Stopped
from tests.harness.decider import AT
from tests.services.priority.core.queues import change, entry, holding, queue


def test_waiting_jobs_come_first_in_the_order_of_their_entry() -> None:
    jobs = (entry("run"), entry("late", at=AT + 9), entry("early"))
    state = queue(*jobs, running=(holding("run", gpus=4),))
    view = state.view(AT)
    assert view.job_ids.tolist() == ["late", "early", "run"]
    assert (view.waiting, view.running.tolist(), view.used_gpus) == (2, [False, False, True], 4.0)


def test_times_are_cluster_seconds_from_the_first_submission() -> None:
    state = queue(entry("a"), entry("b", at=AT + 2000), time_scale=10)
    view = state.view(AT + 5000)
    assert view.now_s == 50.0
    assert view.submit_s.tolist() == [0.0, 20.0]
    assert view.wait_s.tolist() == [50.0, 30.0]


def test_attained_service_is_the_checkpoint_and_the_work_since_the_start() -> None:
    state = queue(entry("a"), time_scale=10)
    change(state, stopped=(Stopped(job_id="a", ran_ms=9000, kept_ms=6000, restarts=1),))
    change(state, running=(holding("a"),))
    assert state.view(AT + 1000).attained_s.tolist() == [60.0], "its workers are being prepared"
    change(state, started=(Started(job_id="a", at=AT + 1000),))
    view = state.view(AT + 3000)
    assert (view.attained_s.tolist(), view.kept_s.tolist()) == ([80.0], [60.0])
    assert (view.ran_s.tolist(), view.restarts.tolist()) == ([90.0], [1.0])


def test_a_part_is_a_view_of_some_jobs_at_the_same_moment() -> None:
    view = queue(entry("a"), entry("b")).view(AT + 1000)
    part = view.part(view.rows[1:], NO_ROWS)
    assert (part.job_ids.tolist(), part.now_s) == (["b"], 1.0)


def test_scores_are_listed_by_place() -> None:
    view = queue(entry("a"), entry("b")).view(AT)
    assert list(ids_and_scores(view, np.array([1.0, 2.0]), [1, 0])) == [("b", 2.0), ("a", 1.0)]
    assert list(ids_and_scores(view, np.zeros(2), [])) == []


def test_a_column_is_gathered_on_first_use_and_only_once() -> None:
    view = queue(entry("a")).view(AT)
    assert "gpus" not in vars(view)
    assert view.gpus is view.gpus
    assert type(view).gpus.__doc__ == "GPUs of the whole gang, as requested."
