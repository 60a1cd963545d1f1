"""Two files of NCCL's inspector say how long a rank worked between collectives."""

from __future__ import annotations

import pytest

from berth_agent.core.inspector_reports import (
    LONGEST_NUMBER,
    MOST_BYTES,
    MOST_OPERATIONS,
    InspectorFile,
    is_of_inspector,
    read_inspector,
    row_between,
)
from tests.services.failslow.core.readers.test_nccl_inspector import a_file

LABELS = (
    'comm_id="0xd1",collective="AllReduce",hostname="n1",rank="4",n_ranks="8",coll_sn="{number}",'
    'timestamp="2025-10-17T03:31:{number:02}Z",gpu_device_id="GPU4",message_size="2.00GB"'
)


def first_version(number: int, time_us: float) -> bytes:
    labels = LABELS.format(number=number)
    return (
        f"nccl_algorithm_bandwidth_gbs{{{labels}}} 81.2\n"
        f"nccl_collective_exec_time_microseconds{{{labels}}} {time_us}\n"
    ).encode()


def counted(**by_collective: tuple[int, float]) -> bytes:
    lines = []
    for collective, (count, sum_us) in by_collective.items():
        labels = f'node="n1",gpu="GPU0",collective="{collective}"'
        lines += [
            f"nccl_collective_count{{{labels}}} {count}",
            f"nccl_collective_exec_time_sum_microseconds{{{labels}}} {sum_us}",
            f"nccl_collective_exec_time_microseconds{{{labels}}} {sum_us / count}",
            f"nccl_collective_exec_time_p95_microseconds{{{labels}}} {sum_us}",
        ]
    return "\n".join(lines).encode()


def files(before: bytes, now: bytes, every_s: float = 30.0) -> tuple[InspectorFile, InspectorFile]:
    return read_inspector(before, 0.0), read_inspector(now, every_s)


def test_what_collectives_leave_of_the_time_is_own_work() -> None:
    row = row_between(*files(counted(AllReduce=(1, 1.0)), counted(AllReduce=(100, 12e6))), 7)
    assert (row.step, row.iteration_s, row.own_s, row.wait_s) == pytest.approx((7, 0.3, 0.18, 0.12))


def test_all_collectives_of_the_file_count() -> None:
    row = row_between(*files(b"nccl_collective_count{} 1", counted(a=(50, 3e6), b=(50, 6e6))), 0)
    assert (row.iteration_s, row.wait_s) == pytest.approx((0.3, 0.09))


def test_the_first_version_numbers_its_collectives() -> None:
    row = row_between(*files(first_version(10, 9e9), first_version(30, 600_000.0)), 0)
    assert (row.iteration_s, row.own_s, row.wait_s) == pytest.approx((1.5, 0.9, 0.6))


def test_the_rank_for_which_others_wait_has_the_most_own_work() -> None:
    before = counted(AllReduce=(1, 1.0))
    slow, other = (
        row_between(*files(before, counted(AllReduce=(100, waited_us))), 0).own_s
        for waited_us in (3e6, 15e6)
    )
    assert slow is not None and other is not None and slow / other == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("contents", "every_s", "words"),
    [
        ((counted(a=(1, 1.0)),) * 2, 0.5, "between two files"),
        ((counted(a=(9, 40e6)),) * 2, 30.0, "time between them"),
        ((first_version(10, 1.0), first_version(10, 1.0)), 30.0, "0 collectives"),
        ((first_version(90, 1.0), first_version(10, 1.0)), 30.0, "0 collectives"),
        ((a_file(1, [100.0]).encode(),) * 2, 30.0, "no number of collectives"),
    ],
)
def test_files_that_do_not_tell_are_refused(
    contents: tuple[bytes, bytes], every_s: float, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        row_between(*files(*contents, every_s=every_s), 0)


@pytest.mark.parametrize("data", [b"", b"# a comment\n", b"\xff", counted(a=(1, 1.0))[:-3] + b"x"])
def test_other_bytes_are_refused_or_read_without_what_is_broken(data: bytes) -> None:
    with pytest.raises(ValueError):
        row_between(read_inspector(data, 0.0), read_inspector(data, 0.1), 0)


HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'nccl_collective_exec_time_microseconds{coll_sn="%s"} 1' % HUGE.encode(), "401 digits"),
        (counted(a=(1, 1.0)) + b"\n" * MOST_BYTES, f"{MOST_BYTES} at most"),
        (
            counted(**{f"a{number}": (1, 1.0) for number in range(MOST_OPERATIONS + 1)}),
            f"more than {MOST_OPERATIONS} kinds",
        ),
    ],
)
def test_a_file_beyond_its_bounds_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_inspector(data, 0.0)


def test_the_longest_number_that_is_read_can_be_computed_with() -> None:
    number = int("9" * LONGEST_NUMBER)
    with pytest.raises(ValueError, match="collectives of"):
        row_between(*files(first_version(1, 1e308), first_version(number, 1e308)), 0)


def test_json_is_of_other_tools() -> None:
    assert is_of_inspector(b"# HELP x\n") and is_of_inspector(b"\nnccl_x 1")
    assert not is_of_inspector(b'{"entries": []}') and not is_of_inspector(b"")
