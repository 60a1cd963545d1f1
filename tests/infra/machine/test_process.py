from __future__ import annotations

import fcntl
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from berth_agent.node.config import Config
from infra.machine import process
from infra.machine.process import (
    END_PORT,
    LEAST_PORT,
    LENT,
    DidNotStart,
    free_ports,
    is_open,
    keep_ports,
    spawn,
)
from services.executor.core.engines.readiness import port_of
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_stopped_process_is_gone_and_stopping_twice_does_nothing(tmp_path: Path) -> None:
    running = spawn("sleeper", SLEEP, tmp_path / "log")
    running.stop()
    running.stop()
    assert not psutil.pid_exists(running.pid)


def test_children_of_a_process_end_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    log = tmp_path / "log"
    running = spawn("parent", [sys.executable, "-c", code], log)
    running.wait_ready(lambda: log.read_text().endswith("\n"), timeout_s=PATIENCE_S)
    child = int(log.read_text())
    running.stop()
    ends = time.monotonic() + PATIENCE_S
    while psutil.pid_exists(child) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not psutil.pid_exists(child)


def test_the_error_of_a_process_that_ends_before_it_is_ready_has_its_output(tmp_path: Path) -> None:
    running = spawn("broken", [sys.executable, "-c", "raise SystemExit('no disk')"], tmp_path / "l")
    with pytest.raises(DidNotStart, match="broken: no disk"):
        running.wait_ready(lambda: False, timeout_s=PATIENCE_S)


def test_a_process_that_is_never_ready_is_stopped(tmp_path: Path) -> None:
    running = spawn("slow", SLEEP, tmp_path / "log")
    with pytest.raises(DidNotStart, match="slow: ended without a word"):
        running.wait_ready(lambda: False, timeout_s=0.2)
    assert not psutil.pid_exists(running.pid)


def test_free_ports_are_different_and_unused() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert not any(is_open(port) for port in ports)
    with socket.create_server(("127.0.0.1", ports[0])):
        assert is_open(ports[0])


def test_a_port_is_kept_unless_something_listens_there() -> None:
    kept, taken = free_ports(2)
    with socket.create_server(("127.0.0.1", taken)):
        assert keep_ports([kept, taken]) == {kept}


@pytest.mark.skipif(not LENT.exists(), reason="the system does not say which ports it lends")
def test_a_free_port_is_none_that_an_outgoing_connection_may_get() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert max(ports) < int(LENT.read_text().split()[0])


def test_no_stack_gets_a_port_that_a_job_may_have_been_promised() -> None:
    config = Config()
    promised = {*range(config.port_first, config.port_first + config.port_count)}
    promised |= {port_of(str(job)) for job in range(config.port_count)}
    assert not promised & {*range(LEAST_PORT, END_PORT)}
    assert min(free_ports(50)) >= LEAST_PORT and max(free_ports(50)) < END_PORT


@pytest.mark.parametrize(
    ("lent", "ports"),
    [
        ("32768 60999", range(LEAST_PORT, END_PORT)),
        ("10002 65535", range(LEAST_PORT, 10_002)),
        ("1024 65535", range(0)),
    ],
)
def test_ports_of_stacks_lie_below_those_that_the_kernel_lends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lent: str, ports: range
) -> None:
    monkeypatch.setattr(process, "LENT", tmp_path / "range")
    (tmp_path / "range").write_text(lent.replace(" ", "\t") + "\n")
    assert sorted(process._unlent()) == list(ports)
    assert len(set(free_ports(4))) == 4


def test_a_port_that_was_given_is_not_given_again_before_its_service_may_have_bound_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    candidates = free_ports(6)
    (notes,) = tmp_path.iterdir()
    notes.unlink()
    monkeypatch.setattr(process, "_unlent", lambda: iter(candidates))
    assert free_ports(3) == candidates[:3]
    assert free_ports(3) == candidates[3:]
    assert not set(free_ports(1)) & set(candidates)
    monkeypatch.setattr(process, "GIVEN_FOR_S", 0.0)
    assert free_ports(3) == candidates[:3]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "fifo"])
def test_ports_are_given_where_something_else_has_the_name_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make(tmp_path / f"berth-ports-{os.getuid()}")
    assert len(set(free_ports(5))) == 5


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_ports_are_given_while_another_user_holds_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / f"berth-ports-{os.getuid()}"
    path.touch()
    os.chown(path, 1, 1)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert len(set(free_ports(5))) == 5


def test_half_a_line_of_given_ports_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = free_ports(2)
    (notes,) = tmp_path.iterdir()
    notes.write_text(notes.read_text()[:-20] + "\n20")
    assert not set(free_ports(5)) & {first[0]}
