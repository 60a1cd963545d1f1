from __future__ import annotations

from services.throttle.core.disciplines.bounded_table import BoundedTable


def test_the_key_that_was_written_longest_ago_is_evicted() -> None:
    table: BoundedTable[str, list[int]] = BoundedTable(capacity=2)
    table.touch("a", list).append(1)
    table.touch("b", list)
    table.touch("a", list).append(2)
    table.touch("c", list)
    assert table.get("b") is None
    assert table.get("a") == [1, 2]
    assert len(table.values) == 2


def test_reading_a_key_does_not_keep_it() -> None:
    table: BoundedTable[str, list[int]] = BoundedTable(capacity=1)
    table.touch("a", list)
    assert table.get("a") == []
    table.touch("b", list)
    assert table.get("a") is None
