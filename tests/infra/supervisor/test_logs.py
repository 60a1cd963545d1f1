"""The last lines of a log since the present start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.supervisor.logs import last_log_lines, mark_start, path_of


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def test_lines_of_earlier_starts_are_left_out(data: Path) -> None:
    path = path_of(data, "gateway")
    path.write_text("an old error\n")
    mark_start(data)
    assert last_log_lines(data, "gateway") == "no output"
    with path.open("a") as log:
        log.write("a new error\n")
    assert last_log_lines(data, "gateway") == "a new error"


def test_all_of_a_log_that_was_rotated_since_the_start_is_new(data: Path) -> None:
    path_of(data, "gateway").write_text("x" * 100)
    mark_start(data)
    path_of(data, "gateway").write_text("new\n")
    assert last_log_lines(data, "gateway") == "new"


def test_a_line_of_a_service_is_shown_as_its_message_and_the_end_of_its_error(data: Path) -> None:
    entry = {"level": "error", "message": "process ends", "error": "Traceback\nOSError: full"}
    path_of(data, "access").write_text(f"plain\n\n{json.dumps(entry)}\n")
    assert last_log_lines(data, "access") == "plain | error: process ends: OSError: full"


def test_only_the_last_lines_are_shown(data: Path) -> None:
    path_of(data, "access").write_text("".join(f"line {number}\n" for number in range(100)))
    assert last_log_lines(data, "access").split(" | ") == [f"line {n}" for n in range(95, 100)]


def test_a_process_without_a_log_has_no_output(data: Path) -> None:
    assert last_log_lines(data, "absent") == "no output"
