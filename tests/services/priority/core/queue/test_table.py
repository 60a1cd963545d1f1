"""The table of a pool's jobs."""

from __future__ import annotations

from services.priority.core.queue.table import FIRST_ROWS, WAITING, JobTable


def test_a_freed_row_is_used_again_without_its_numbers() -> None:
    table = JobTable()
    row = table.add("a")
    table.put(row, gpus=4.0, p50_s=9.0)
    table.drop(row)
    assert table.add("b") == row
    assert (table.get(row, "gpus"), table.get(row, "p50_s")) == (0.0, 0.0)


def test_rows_of_a_phase_come_in_the_order_of_entry() -> None:
    table = JobTable()
    first, second = table.add("a"), table.add("b")
    table.drop(first)
    third = table.add("c")
    table.phase[[second, third]] = WAITING
    assert table.ids[table.of(WAITING)].tolist() == ["b", "c"]


def test_a_full_table_grows_and_keeps_its_rows() -> None:
    table = JobTable()
    rows = [table.add(f"j{n}") for n in range(FIRST_ROWS + 1)]
    table.put(rows[0], tier=2.0)
    assert sorted(rows) == list(range(FIRST_ROWS + 1))
    assert table.get(rows[0], "tier") == 2.0
    assert table.ids[rows].tolist() == [f"j{n}" for n in range(FIRST_ROWS + 1)]


def test_tables_of_the_same_rows_are_equal() -> None:
    one, other = JobTable(), JobTable()
    for table in (one, other):
        table.put(table.add("a"), walltime_s=float("nan"))
    assert one == other
    other.put(0, gpus=1.0)
    assert one != other
