"""Jobs that end for the space that their files take."""

from __future__ import annotations

from berth_agent.core.disk_use import DiskUse, excessive

SMALL, LARGE, PAIR = DiskUse(("a",), 0.5), DiskUse(("b",), 3.0), DiskUse(("c", "d"), 3.5)
FULL = "the disk has less than 24 MiB"


def ended(*uses: DiskUse, bound_gib: float = 0.0, problem: str = "") -> dict[tuple[str, ...], str]:
    return {use.allocation_ids: why for use, why in excessive(uses, bound_gib, problem)}


def test_what_is_above_the_bound_ends_and_workers_of_one_job_have_theirs_together() -> None:
    assert ended(SMALL, LARGE, PAIR, bound_gib=2.0) == {
        ("b",): "its files take 3 GiB of the node's disk; 2 (disk_gib) are allowed"
    }


def test_without_a_bound_nothing_ends_while_the_disk_has_space() -> None:
    assert ended(SMALL, LARGE, PAIR) == {}


def test_on_a_full_disk_the_job_with_the_most_files_ends() -> None:
    assert ended(SMALL, PAIR, LARGE, problem=FULL) == {
        ("c", "d"): f"its files take 3.5 GiB, more than any other job's here, and {FULL}"
    }


def test_a_job_of_few_files_is_not_what_fills_a_disk() -> None:
    assert ended(SMALL, problem=FULL) == {}


def test_files_that_were_deleted_and_are_open_are_named() -> None:
    held = DiskUse(("a",), 3.0, held_gib=2.5)
    assert ended(held, bound_gib=2.0) == {
        ("a",): "its files take 3 GiB of the node's disk (2.5 of it in files that it has deleted"
        " and keeps open); 2 (disk_gib) are allowed"
    }


def test_what_a_job_wrote_stands_for_files_that_are_too_many_to_measure() -> None:
    """And for a full disk alone: a job may write the same file again and again."""
    many = DiskUse(("a",), 0.5, written_gib=9.0)
    assert ended(many, LARGE, problem=FULL) == {
        ("a",): "it has written 9 GiB, to more files than can be measured in time, more than any"
        f" other job's here, and {FULL}"
    }
    assert ended(many, bound_gib=4.0) == {}
