"""Short-lived children of a step."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from berth_agent.step import child

pytestmark = pytest.mark.process


def test_a_child_tells_its_exit_code_and_the_begin_of_its_output() -> None:
    def print_much() -> None:
        os.write(1, b"begin\n")
        subprocess.run(["head", "-c", "1000000", "/dev/zero"], check=True, close_fds=False)

    code, output = child.run(print_much, 60)
    assert code == 0 and output.startswith(b"begin\n") and len(output) == child.OUTPUT_BYTES


def test_output_that_never_ends_does_not_outlast_the_limit() -> None:
    """/dev/zero stands for children that fill the pipe faster than it is emptied."""
    with subprocess.Popen(["sleep", "600"]) as sleeper, Path("/dev/zero").open("rb") as zeros:
        output = bytearray()
        begun_s = time.monotonic()
        assert child.wait_for_end(sleeper.pid, zeros.fileno(), output, 0.2) is False
        assert time.monotonic() - begun_s >= 0.2 and len(output) == child.OUTPUT_BYTES
        sleeper.kill()
