"""Signals to processes of other users."""

from __future__ import annotations

import os

import pytest

from berth_agent.linux import processes

pytestmark = pytest.mark.process
OTHER_UID = 65534


def test_a_process_of_another_user_is_passed_over() -> None:
    """A worker whose program has changed its user would else end the step of an agent."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(OTHER_UID)
            for other in (1, parent):
                processes.kill_each([other], 0)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
