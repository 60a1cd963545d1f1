"""Rows on disk, in the order of their keys, compared side by side."""

from __future__ import annotations

import tracemalloc

from shared.verify import row_store
from shared.verify.row_store import RowStore, side_by_side


def test_rows_are_kept_as_they_are_and_come_in_the_order_of_keys() -> None:
    store = RowStore()
    store.put("a", "é/2", ("x", 1, 0.1 + 0.2, None, True))
    store.put("a", "z/1", ("y",))
    store.put("b", "z/0", ("other table",))
    store.put("a", "z/1", ("z",))
    assert store.get("a", "z/1") == ("z",)
    assert [*store.rows("a")] == [("z/1", ("z",)), ("é/2", ("x", 1, 0.1 + 0.2, None, True))]
    assert store.get("a", "é/2") == ("x", 1, 0.1 + 0.2, None, True)
    assert store.get("a", "none") is None


def test_only_rows_of_a_lane_that_ended_before_a_time_are_dropped() -> None:
    store = RowStore()
    for key, ended_at in (("1/a", 5), ("1/b", 9), ("1/open", 0), ("11/a", 5), ("2/a", 5)):
        store.put("t", key, (), ended_at)
    store.drop("t", "1/", 9)
    assert [key for key, _ in store.rows("t")] == ["1/b", "1/open", "11/a", "2/a"]


def test_every_key_of_either_side_comes_once() -> None:
    first = iter([("a", (1,)), ("b", (2,)), ("d", (4,))])
    second = iter([("b", (2,)), ("c", (3,)), ("d", (5,)), ("e", (6,))])
    assert [*side_by_side(first, second)] == [
        ("a", (1,), None),
        ("b", (2,), (2,)),
        ("c", None, (3,)),
        ("d", (4,), (5,)),
        ("e", None, (6,)),
    ]


def test_what_is_in_memory_is_bounded() -> None:
    """Of python's own memory; the cache of the file is bounded by its setting."""
    store = RowStore()
    tracemalloc.start()
    for number in range(6 * row_store.BATCH):
        store.put("t", f"0/{number:09d}", (number, "finished", 0.5))
    assert sum(1 for _ in store.rows("t")) == 6 * row_store.BATCH
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 700 * row_store.BATCH + row_store.FILTER_BYTES


def test_a_row_is_found_in_memory_and_in_the_file_and_any_other_is_none() -> None:
    store, rows = RowStore(), row_store.BATCH + 100
    for number in range(rows):
        store.put("t", f"{number}", (number,))
    assert [store.get("t", f"{number}") for number in range(rows)] == [(n,) for n in range(rows)]
    assert not any(store.get("other", f"{number}") for number in range(rows))
