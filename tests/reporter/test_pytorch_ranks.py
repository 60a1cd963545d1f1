"""Four real ranks over gloo: the hook tells the own work of each from its wait for the others."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from berth_agent.telemetry_receiver import Datagram
from tests.e2e.test_training import PYTHON, missing
from tests.patience import PATIENCE_S
from tests.reporter.sent import Sent

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "reported_ddp.py"
RANKS = 4
ALLOWED_S = 1e-6

pytestmark = [pytest.mark.parts, pytest.mark.process]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(rank: int, port: int, sent: Sent, seconds: float = 3.0) -> subprocess.Popen[bytes]:
    gang = {
        "RANK": str(rank),
        "WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": str(ROOT / "reporter"),
    }
    assert PYTHON is not None
    command = [PYTHON, str(EXAMPLE), str(seconds)]
    return subprocess.Popen(command, env={**os.environ, **gang, **sent.environ})


def train(receivers: list[Sent]) -> list[list[Datagram]]:
    """Return the iterations of each rank."""
    port = free_port()
    ranks = [start(rank, port, sent) for rank, sent in enumerate(receivers)]
    read: list[list[Datagram]] = [[] for _ in ranks]
    while any(process.poll() is None for process in ranks):
        for kept, sent in zip(read, receivers, strict=True):
            kept += sent.datagrams()
        time.sleep(0.01)
    assert [process.wait(PATIENCE_S) for process in ranks] == [0] * RANKS
    return read


def test_each_rank_reports_own_work_and_waiting(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    with ExitStack() as stack:
        receivers = [
            stack.enter_context(closing(Sent(tmp_path / f"rank-{rank}"))) for rank in range(RANKS)
        ]
        read = train(receivers)
    for rank, kept in enumerate(read):
        assert kept, f"of rank {rank}"
        assert {one.rank for one in kept} == {rank}
        for one in kept:
            assert one.own_s is not None and one.wait_s is not None
            assert one.own_s + one.wait_s <= one.iteration_s + ALLOWED_S
