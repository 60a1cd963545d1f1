from __future__ import annotations

from services.placement.core.pool.schedule import RECENT_WORKERS, RecentNeeds
from services.placement.core.pool.shape import shape_of
from tests.services.placement.core.lane import job


def test_workers_of_gangs_count_by_their_needs_alone() -> None:
    needs = RecentNeeds()
    needs.add(shape_of(job("gang", 0.5, workers=3, node_selector={"zone": "a"}).spec), 3)
    needs.add(shape_of(job("one", 0.5).spec), 1)
    assert list(needs.counts.values()) == [4]


def test_old_workers_are_forgotten() -> None:
    needs = RecentNeeds()
    old, new = shape_of(job("old", 0.5).spec), shape_of(job("new", 1).spec)
    needs.add(old, 10)
    needs.add(new, RECENT_WORKERS)
    assert dict(needs.counts) == {new: RECENT_WORKERS}
    assert len(needs.order) == RECENT_WORKERS
