"""Output on its way: each line once, with its number, and gaps that are visible."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.node.output.follower import OPEN_READS, OutputFollower
from berth_agent.step.output import OutputLog

W = "0/1/0/0"


def drain(follower: OutputFollower, *, ended: bool = True) -> dict[int, str]:
    """Read all there is, as if each message was answered."""
    lines: dict[int, str] = {}
    while (printed := follower.read(7, ended=ended)) is not None:
        for number, text in enumerate(printed.lines, printed.first_line):
            assert number not in lines
            lines[number] = text
        follower.sent()
    return lines


@given(st.lists(st.integers(1, 300), max_size=120), st.integers(1, 30))
def test_lines_are_read_with_their_numbers_while_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], every: int
) -> None:
    folder = str(tmp_path_factory.mktemp("output"))
    log, follower = OutputLog(folder, 2**20), OutputFollower(W, folder)
    seen: dict[int, str] = {}
    for number, size in enumerate(sizes):
        log.write(b"%d " % number + b"x" * size + b"\n")
        if number % every == 0:
            seen |= drain(follower, ended=False)
    seen |= drain(follower)
    log.close()
    assert [int(text.split()[0]) for text in seen.values()] == list(seen) == list(range(len(sizes)))


def test_lines_that_were_not_answered_are_read_again(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 2**20)
    log.write(b"a\nb\n")
    follower = OutputFollower(W, str(tmp_path))
    first = follower.read(10, ended=False)
    assert first == follower.read(10, ended=False)
    follower.sent()
    assert follower.read(10, ended=False) is None
    resumed = OutputFollower(W, str(tmp_path))
    resumed.resume(follower.position)
    log.write(b"c\n")
    assert drain(resumed) == {2: "c"}


def test_a_line_without_an_end_waits_for_the_end_of_the_worker(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 2**20)
    log.write(b"whole\nhalf")
    follower = OutputFollower(W, str(tmp_path))
    assert drain(follower, ended=False) == {0: "whole"}
    assert drain(follower) == {1: "half"}


def test_a_reader_far_behind_sees_the_newest_lines_and_the_gap(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 64 * 2**20)
    count = 200_000
    for number in range(count):
        log.write(b"line %d\n" % number)
    lines = drain(OutputFollower(W, str(tmp_path)))
    log.close()
    assert list(lines)[-1] == count - 1 and 0 not in lines
    assert all(text == f"line {number}" for number, text in lines.items())


def test_dropped_segments_leave_a_gap(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 32 * 1024)
    follower = OutputFollower(W, str(tmp_path))
    log.write(b"line 0\n")
    assert drain(follower, ended=False) == {0: "line 0"}
    for number in range(1, 10_000):
        log.write(b"line %d\n" % number)
    lines = drain(follower)
    log.close()
    assert list(lines)[-1] == 9_999 and len(lines) < 9_999
    assert all(text == f"line {number}" for number, text in lines.items())


def test_without_output_there_is_nothing(tmp_path: Path) -> None:
    assert drain(OutputFollower(W, str(tmp_path / "missing"))) == {}


def test_the_end_of_the_output_is_reported_once_after_its_lines(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 2**20)
    follower = OutputFollower(W, str(tmp_path))
    assert follower.read(10, ended=False) is None
    log.write(b"a\nhalf")
    first = follower.read(10, ended=True)
    assert first is not None and (first.lines, first.is_last) == (("a",), False)
    follower.sent()
    follower.read(10, ended=True)
    follower.sent()
    for _ in range(2):
        end = follower.read(10, ended=True)
        assert end is not None, "until it was answered"
        assert (end.first_line, end.lines, end.is_last) == (2, (), True)
    follower.sent()
    assert follower.read(10, ended=True) is None


def test_a_bar_of_progress_is_one_line_that_is_shown_now_and_then(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 2**24)
    follower = OutputFollower(W, str(tmp_path))
    log.write(b"begin\n")
    assert drain(follower, ended=False) == {0: "begin"}
    shown = []
    for percent in range(100):
        log.write(b"%d %% %s\r" % (percent, b"=" * 10_000))
        printed = follower.read(7, ended=False)
        if printed is not None:
            assert (printed.first_line, printed.lines) == (1, ())
            shown.append(printed.open_line.split()[0])
            follower.sent()
    assert shown == [f"{percent}" for percent in range(OPEN_READS - 2, 100, OPEN_READS)]
    log.write(b"100 %\nend\n")
    assert drain(follower, ended=False) == {1: "100 %", 2: "end"}
    assert drain(follower) == {}


def test_an_open_line_that_does_not_change_is_sent_once(tmp_path: Path) -> None:
    log, follower = OutputLog(str(tmp_path), 2**20), OutputFollower(W, str(tmp_path))
    log.write(b"half")
    reads = [follower.read(7, ended=False) for _ in range(2 * OPEN_READS)]
    assert [printed.open_line for printed in reads if printed is not None] == ["half"] * 5
    follower.sent()
    assert [follower.read(7, ended=False) for _ in range(2 * OPEN_READS)] == [None] * 2 * OPEN_READS
    assert drain(follower) == {0: "half"}
