"""The time that a process which has ended waits for its next start."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import pytest
from supervisor.states import ProcessStates

from infra.supervisor.configuration import EXIT_PROTOCOL
from infra.supervisor.supervisord import EXIT_ERROR, MOST_PAUSE_S, STEADY_S, StackProcess
from shared.bus import fatal

LIVED_S = 10.0


class Process:
    """A process of the supervisor that starts and ends as the test says."""

    def __init__(self) -> None:
        logger = SimpleNamespace(warn=logging.warning, info=logging.info)
        options = SimpleNamespace(logger=logger, close_parent_pipes=lambda pipes: None)
        self.process = StackProcess(
            SimpleNamespace(
                name="placement", exitcodes=[EXIT_PROTOCOL], startsecs=1, options=options
            )
        )

    def ends(self, code: int, lived_s: float = LIVED_S) -> str:
        """Return the state after a life that ended with this code; 9 is a kill."""
        process = self.process
        process.state = ProcessStates.RUNNING if lived_s > 1 else ProcessStates.STARTING
        process.laststart = time.time() - lived_s
        process.finish(1, code << 8 if code != 9 else 9)
        names = {ProcessStates.EXITED: "exited", ProcessStates.BACKOFF: "backoff"}
        return names[process.state]

    def errs_again(self, times: int, pause_s: float) -> None:
        """End with the last of so many errors in a row; it starts again after this pause."""
        self.process._errors = times - 1
        before_s = time.time()
        assert self.ends(EXIT_ERROR) == "backoff"
        assert before_s + pause_s <= self.process.delay <= time.time() + pause_s


@pytest.fixture
def process() -> Process:
    return Process()


def test_the_pause_grows_from_one_error_to_the_next(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    assert process.ends(EXIT_ERROR) == "exited", "it starts again at once"
    process.errs_again(20, 19)
    process.errs_again(10_000, MOST_PAUSE_S)
    assert "placement has ended with an error 20 times, each within 60 s" in caplog.text


def test_an_error_after_a_long_life_is_the_first_one(process: Process) -> None:
    assert [process.ends(EXIT_ERROR) for _ in range(2)] == ["exited", "backoff"]
    assert process.ends(EXIT_ERROR, lived_s=2 * STEADY_S) == "exited"


def test_a_killed_process_starts_again_at_once(process: Process) -> None:
    assert [process.ends(9) for _ in range(3)] == ["exited"] * 3


def test_a_refused_ledger_is_final_also_in_the_first_second(process: Process) -> None:
    assert process.ends(EXIT_PROTOCOL, lived_s=0.1) == "exited"
    assert process.process.exitstatus == EXIT_PROTOCOL


def test_the_code_of_an_error_is_that_of_the_services() -> None:
    assert EXIT_ERROR == fatal.EXIT_ERROR
