from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from infra.machine.process import LENT, DidNotStart, free_ports, is_open, spawn

pytestmark = pytest.mark.process

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_stopped_process_is_gone_and_stopping_twice_does_nothing(tmp_path: Path) -> None:
    running = spawn("sleeper", SLEEP, tmp_path / "log")
    running.stop()
    running.stop()
    assert not _alive(running.pid)


def test_children_of_a_process_end_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    log = tmp_path / "log"
    running = spawn("parent", [sys.executable, "-c", code], log)
    running.wait_ready(lambda: log.read_text().endswith("\n"), timeout_s=120)
    child = int(log.read_text())
    running.stop()
    ends = time.monotonic() + 60
    while _alive(child) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not _alive(child)


def test_the_error_of_a_process_that_ends_before_it_is_ready_has_its_output(tmp_path: Path) -> None:
    running = spawn("broken", [sys.executable, "-c", "raise SystemExit('no disk')"], tmp_path / "l")
    with pytest.raises(DidNotStart, match="broken: no disk"):
        running.wait_ready(lambda: False, timeout_s=120)


def test_a_process_that_is_never_ready_is_stopped(tmp_path: Path) -> None:
    running = spawn("slow", SLEEP, tmp_path / "log")
    with pytest.raises(DidNotStart, match="slow: ended without a word"):
        running.wait_ready(lambda: False, timeout_s=0.2)
    assert not _alive(running.pid)


def test_free_ports_are_different_and_unused() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert not any(is_open(port) for port in ports)
    with socket.create_server(("127.0.0.1", ports[0])):
        assert is_open(ports[0])


@pytest.mark.skipif(not LENT.exists(), reason="the system does not say which ports it lends")
def test_a_free_port_is_none_that_an_outgoing_connection_may_get() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert max(ports) < int(LENT.read_text().split()[0])
