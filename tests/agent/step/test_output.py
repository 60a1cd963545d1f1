"""Segments of a worker's output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth_agent.step.output import SEGMENTS, OutputLog


def segments(folder: Path) -> list[tuple[int, bytes]]:
    """Return the number of the first line and the content of each segment, oldest first."""
    files = {int(path.name.rsplit(".", 1)[1]): path for path in folder.glob("output.log.*")}
    return [(first, files[first].read_bytes()) for first in sorted(files)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.integers(0, 900), max_size=400),
    cuts=st.lists(st.integers(1, 5000), min_size=1, max_size=20),
)
def test_each_kept_line_has_its_number(
    tmp_path_factory: pytest.TempPathFactory, lines: list[int], cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("output")
    log = OutputLog(str(folder), 32 * 1024)
    text = b"".join(b"%d " % number + b"x" * size + b"\n" for number, size in enumerate(lines))
    place = 0
    for step in range(10_000):
        if place >= len(text):
            break
        log.write(text[place : place + cuts[step % len(cuts)]])
        place += cuts[step % len(cuts)]
    log.close()
    kept = segments(folder)
    assert log.lines == len(lines) and len(kept) <= SEGMENTS
    assert sum(len(content) for _, content in kept) <= 32 * 1024
    for first, content in kept:
        numbers = [int(line.split()[0]) for line in content.splitlines()]
        assert numbers == list(range(first, first + len(numbers)))
    if lines:
        assert kept[0][0] == 0 and kept[-1][0] + kept[-1][1].count(b"\n") == len(lines)


def test_a_line_without_an_end_is_split(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 32 * 1024)
    log.write(b"x" * 200_000)
    log.close()
    assert all(len(content) <= 4097 for _, content in segments(tmp_path))
    assert segments(tmp_path)[-1][0] == log.lines


def test_the_last_lines_have_no_control_characters(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 32 * 1024)
    log.write(b"one\n\x1b[31mred\xff\n" + b"y" * 9)
    assert log.last_lines(2, 5) == ["\ufffd[31m", "yyyyy"]


def test_a_note_begins_a_line(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 32 * 1024)
    log.write(b"half")
    log.note("warning")
    log.note("again")
    assert segments(tmp_path) == [(0, b"half\nberth: warning\nberth: again\n")]


def test_a_full_disk_loses_output_and_its_numbers_go_on(tmp_path: Path) -> None:
    """/dev/full refuses every write; the place comes back when there is room."""
    full = tmp_path / "output.log.0"
    full.symlink_to("/dev/full")
    log = OutputLog(str(tmp_path), 32 * 1024)
    log.write(b"lost\nlost too\n")
    assert log.lines == 2
    log.write(b"kept\n")
    log.close()
    full.unlink()
    assert segments(tmp_path) == [(2, b"kept\n")]


def test_a_pipe_is_copied_until_its_end(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    log = OutputLog(str(tmp_path), 1024 * 1024)
    os.write(writer, b"a\nb\n")
    assert log.pump(reader) is True
    os.close(writer)
    assert log.pump(reader) is False
    os.close(reader)
    assert segments(tmp_path) == [(0, b"a\nb\n")]


def test_a_copy_of_output_that_never_ends_is_bounded(tmp_path: Path) -> None:
    """/dev/zero stands for a worker that fills the pipe faster than it is emptied."""
    log = OutputLog(str(tmp_path), 32 * 1024)
    with Path("/dev/zero").open("rb") as zeros:
        assert log.pump(zeros.fileno()) is True
    log.close()
    assert log.lines > 0
