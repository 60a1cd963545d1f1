"""Selects the groups that history keeps where there are too many.

Each tenant names its jobs and users as it likes, and without an end. The tenant with the most
groups loses the half of them that learnt longest ago, then the next, until few enough are left: so
a tenant that floods history with names forgets its own ones, and no other tenant does.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from services.priority.core.history.job_groups import HistoryGroup, owner_of


def lately_learnt(
    rows: Mapping[HistoryGroup, int], learnt: Sequence[float], most: int
) -> dict[HistoryGroup, int]:
    """Return the groups that are kept, `most` or fewer, with their rows, in the same order.

    `learnt` [rows]: the number of the job that each group learnt last.
    """
    owned: dict[str, list[HistoryGroup]] = {}
    for group in sorted(rows, key=lambda group: (-learnt[rows[group]], rows[group])):
        owned.setdefault(owner_of(group), []).append(group)
    largest = [(-len(own), owner) for owner, own in owned.items()]
    heapq.heapify(largest)
    left = len(rows)
    while left > most:
        size, owner = heapq.heappop(largest)
        own = owned[owner]
        del own[-size // 2 :]
        left += size + len(own)
        heapq.heappush(largest, (-len(own), owner))
    kept = {group for own in owned.values() for group in own}
    return {group: row for group, row in rows.items() if group in kept}
