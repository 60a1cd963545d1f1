"""A selection of groups where history has too many of them."""

from __future__ import annotations

from services.priority.core.history.forgetting import lately_learnt
from services.priority.core.history.job_groups import HistoryGroup


def names(tenant: str, count: int) -> list[HistoryGroup]:
    return [("name", tenant, "u", f"n{number}") for number in range(count)]


def test_the_tenant_with_most_groups_loses_those_that_learnt_longest_ago() -> None:
    rows = {group: row for row, group in enumerate([("all",), *names("red", 8), *names("blue", 3)])}
    learnt = [99.0, *range(8, 0, -1), 1.0, 2.0, 3.0]
    kept = lately_learnt(rows, learnt, 8)
    assert list(kept) == [("all",), *names("red", 4), *names("blue", 3)]
    assert all(rows[group] == row for group, row in kept.items())


def test_where_many_tenants_have_few_groups_each_enough_of_them_go() -> None:
    rows: dict[tuple[str, ...], int] = {("tenant", f"t{n}"): n for n in range(100)}
    kept = lately_learnt(rows, [float(number % 10) for number in range(100)], 75)
    assert len(kept) == 75


def test_few_groups_are_all_kept() -> None:
    rows = {group: row for row, group in enumerate(names("red", 3))}
    assert lately_learnt(rows, [3.0, 1.0, 2.0], 3) == rows
