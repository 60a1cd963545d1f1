"""The order in which pytest-xdist gives tests to its workers."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from tests.selection import group_of


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker one group after the other, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
