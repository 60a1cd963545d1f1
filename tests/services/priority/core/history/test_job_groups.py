"""The groups of a kind of job, and where their rows are kept."""

from __future__ import annotations

import pickle

import numpy as np

from services.priority.core.history.history import History
from services.priority.core.history.job_groups import KINDS_MOST, GroupRows, groups


def test_a_job_without_a_user_or_name_is_in_no_group_of_them() -> None:
    assert [group is None for group in groups("red", "", "", 1.0)] == [*[False] * 5, *[True] * 4]


def test_a_kind_of_job_that_was_learnt_is_estimated_as_before_it_was_kept() -> None:
    kept, fresh = History(), History()
    for seconds in (30.0, 4000.0, 31.0):
        for history in (kept, fresh):
            history.learn("red", "ada", "run-1", 2.0, seconds)
        fresh.learnt.clear()
        of_both = [history.estimate("red", "ada", "run-1", 2.0) for history in (kept, fresh)]
        assert of_both[0].p.tolist() == of_both[1].p.tolist()
    assert kept == fresh


def test_rows_are_bounded_and_no_part_of_a_snapshot() -> None:
    rows = GroupRows()
    for n in range(KINDS_MOST + 1):
        rows.keep(("red", "ada", f"run-{n}", 1.0, ""), [n])
    assert list(rows.values()) == [np.array([KINDS_MOST])]
    assert pickle.loads(pickle.dumps(rows)) == {}
