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


def test_a_new_key_makes_the_oldest_ones_that_are_over_forgotten() -> None:
    table: BoundedTable[str, list[int]] = BoundedTable()
    for key in "abcd":
        table.touch(key, list)
    table.touch("b", list).append(1)
    table.touch("e", list, lambda value: not value)
    assert [*table.values] == ["d", "b", "e"]
    table.touch("f", list, lambda value: not value)
    assert [*table.values] == ["b", "e", "f"]
    table.touch("g", list, lambda value: not value)
    assert [*table.values] == ["b", "e", "f", "g"]
