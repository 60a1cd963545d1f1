"""The command that runs a service in its container, without a container."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from infra.image import run
from shared.bus import fatal
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

RUN = [sys.executable, "-I", "-S", str(Path(run.__file__).resolve())]
BROKEN = """
import subprocess, sys
from shared.ledger.errors import TailLost
from shared.bus.fatal import die
helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(helper.pid, flush=True)
die(TailLost("placement/0 ends before 7: tail lost"), "placement")
"""
LONG = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("up", flush=True)
while True:
    signal.pause()
"""


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*RUN, sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def eventually(what: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < ends, "did not happen in time"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Return whether it has ended, also if its parent has not waited for it yet."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("", 0),
        ("raise SystemExit(70)", fatal.EXIT_ERROR),
        ("import os; os.kill(os.getpid(), 9)", 137),
    ],
)
def test_it_ends_as_the_command_ends_so_that_docker_starts_it_again(
    code: str, exit_code: int
) -> None:
    with running(code) as process:
        assert process.wait(PATIENCE_S) == exit_code


def test_after_a_broken_ledger_it_stays_says_so_and_nothing_else_goes_on() -> None:
    with running(BROKEN) as process:
        assert process.stdout is not None and process.stderr is not None
        helper = int(process.stdout.readline())
        lines = [process.stderr.readline() for _ in range(2)]
        assert "placement stops: TailLost" in lines[0] and lines[1].strip() == run.STOPPED
        eventually(lambda: is_gone(helper))
        assert process.poll() is None
        process.terminate()
        assert process.wait(PATIENCE_S) == -signal.SIGTERM
    assert run.EXIT_PROTOCOL == fatal.EXIT_PROTOCOL


def test_a_stop_reaches_the_command_which_ends_in_its_own_way() -> None:
    with running(LONG) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 9
