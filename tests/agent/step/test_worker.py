"""Signals of an init to its program."""

from __future__ import annotations

import signal
import subprocess

import pytest

from berth_agent.step.worker import terminate

pytestmark = pytest.mark.process


def test_a_program_that_ended_a_moment_ago_gets_no_signal_and_raises_nothing() -> None:
    with subprocess.Popen(["true"]) as program:
        program.wait()
        terminate(program.pid)


@pytest.mark.parametrize("leads", [True, False])
def test_a_program_is_ended_whether_it_leads_its_group_or_not(leads: bool) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=leads) as program:
        terminate(program.pid)
        assert program.wait() == -signal.SIGTERM
