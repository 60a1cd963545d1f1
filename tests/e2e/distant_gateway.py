"""The gateway of a stand behind a proxy: it can be taken away from its clients, and comes back.

Beside it clients that repeat what they want until it is done, and keep the complaints meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal

from benchmarks.parts.chaos.faults import paused
from berth_agent.node.credentials.identity import read_identity
from berth_agent.node.credentials.renewal import Credentials
from cli.errors import UNREACHABLE
from infra.drills.proxy import Mode, Proxy
from infra.machine.owned_folders import scratch_folder
from infra.machine.process import free_ports
from infra.supervisor import control, supervise
from tests.e2e.joined import JoinedNode
from tests.e2e.stand import Stand, eventually
from tests.patience import PATIENCE_S

Fault = Literal["paused", "killed", "cut"]
GATEWAY = "gateway"
AGAIN_S = 0.5
"""Pause of a client between two attempts, of which most start a process."""


class DistantGateway:
    """A proxy in front of the gateway, in a thread of its own."""

    def __init__(self, stand: Stand) -> None:
        self._data = stand.stack.data_dir
        scheme, _, port = stand.stack.gateway.rpartition(":")
        (own,) = free_ports(1)
        self.url = f"{scheme}:{own}"
        self._proxy = Proxy(int(port))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._proxy.start(own), self._loop).result(PATIENCE_S)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._proxy.stop(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def pid(self) -> int:
        return supervise.pid_of(self._data, GATEWAY)

    @contextmanager
    def away(self, fault: Fault) -> Iterator[None]:
        """Take the gateway away inside the block; it is ready again behind it."""
        take = {"paused": self._paused, "killed": self._killed, "cut": self._cut}[fault]
        with take():
            yield
        supervise.wait_ready(self._data, (GATEWAY,), PATIENCE_S)

    def _paused(self) -> AbstractContextManager[None]:
        return paused(self.pid())

    @contextmanager
    def _killed(self) -> Iterator[None]:
        os.kill(self.pid(), signal.SIGKILL)
        eventually(self._is_stopped)
        try:
            yield
        finally:
            control.start(self._data, GATEWAY)

    def _is_stopped(self) -> bool:
        """Keep the supervisor from starting it again, which it may do once meanwhile."""
        control.stop(self._data, GATEWAY)
        states = {process.name: process.state for process in control.processes(self._data)}
        return states[GATEWAY] == "stopped"

    @contextmanager
    def _cut(self) -> Iterator[None]:
        self._set("half_open")
        try:
            yield
        finally:
            self._set("good")

    def _set(self, mode: Mode) -> None:
        async def change() -> None:
            self._proxy.mode = mode

        asyncio.run_coroutine_threadsafe(change(), self._loop).result(PATIENCE_S)


@contextmanager
def a_distant_gateway(stand: Stand) -> Iterator[DistantGateway]:
    gateway = DistantGateway(stand)
    try:
        yield gateway
    finally:
        gateway.close()


class Newcomer(JoinedNode):
    """A node that has not joined yet."""

    def join(self, *executors: str) -> None:
        """Leave it to the test."""


@contextmanager
def a_newcomer(stand: Stand, node_id: str) -> Iterator[Newcomer]:
    with scratch_folder("node") as folder:
        node = Newcomer(stand, "", folder, node_id)
        try:
            yield node
        finally:
            node.close()


class Client:
    """Repeats an action in a thread until it is done, or the block ends."""

    def __init__(self, act: Callable[[], str | None]) -> None:
        """Begin; `act` returns why it failed, an empty text if it goes on, None if it is done."""
        self.complaints: list[str] = []
        self._act = act
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._thread.start()

    def _repeat(self) -> None:
        while not self._is_over.wait(AGAIN_S) and (complaint := self._act()) is not None:
            if complaint:
                self.complaints.append(complaint)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S)

    def wait(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), self.complaints


def joining(node: Newcomer, gateway: DistantGateway, token: str, ca: Path | None) -> Client:
    """Join as an operator does it on the machine."""
    trust = ("--ca", str(ca)) if ca else ()

    def act() -> str | None:
        words = ("join", gateway.url, "--token", token, "--node-id", node.node_id, *trust)
        done = node.call(*words)
        return (done.stderr or "failed") if done.returncode else None

    return Client(act)


def renewing(node: Newcomer) -> Client:
    """Renew the node's credential as its agent does it close to the end."""
    state = str(node.state)
    identity = read_identity(state)
    credentials = Credentials(state, identity)

    def act() -> str | None:
        is_renewed = credentials.renew_if_due(identity.expires_at - 1)
        return None if is_renewed else credentials.problem

    return Client(act)


class Following:
    """A user who follows the output of a job, with the command line."""

    def __init__(self, stand: Stand, gateway: DistantGateway, job_id: str, folder: Path) -> None:
        """Return once the first line is printed."""
        self._command = [sys.executable, "-m", "cli", "logs", "-f", job_id]
        own = {"BERTH_URL": gateway.url, "BERTH_KEY": stand.keys["ada"]}
        trust = {"BERTH_CA": str(stand.stack.ca)} if stand.stack.tls else {}
        self._environment = {**os.environ, **own, **trust}
        self._out, self._err = folder / "out", folder / "err"
        self._process = self._start()
        eventually(self.lines)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._out.open("wb") as out, self._err.open("wb") as err:
            return subprocess.Popen(self._command, env=self._environment, stdout=out, stderr=err)

    def lines(self) -> list[str]:
        """Return what the last command printed."""
        return self._out.read_text().splitlines()

    def to_the_end(self) -> Client:
        """Follow until the command ends by itself, with the output complete.

        It gives up where the gateway is away for long, as it may be on a busy machine: then the
        user repeats it.
        """

        def act() -> str | None:
            code, complaint = self._process.poll(), self._err.read_text()
            if code == UNREACHABLE:
                self._process = self._start()
            elif code is not None:
                return None if code == 0 else f"exit code {code}: {complaint}"
            return complaint

        return Client(act)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
