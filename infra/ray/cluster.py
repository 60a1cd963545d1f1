"""A real Ray on this machine: a head without GPUs, and a node for each of a few names.

Ray is in an environment of its own, in the user's cache; nothing else is installed. GPUs are
numbers alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from infra.machine.environments import EnvironmentMissing, environment, python_of
from infra.machine.process import START_S, free_ports

NODES = ("g1", "g2", "g3")
GPUS = 4
HEAD = "127.0.0.2"
"""Ray takes 127.0.0.1 for an address of the network."""
ADDRESSES = {node: f"127.0.0.{number}" for number, node in enumerate(NODES, 3)}
RAY = ("raylet", "ray::", "gcs_server", "ray/dashboard")
"""Words of the commands of Ray's own processes."""
COMMON = (
    "--block",
    "--disable-usage-stats",
    "--object-store-memory=80000000",
    # Ray's own range of them has ports that are free now.
    "--min-worker-port=0",
    "--max-worker-port=0",
)
SMALL = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
}


class RayCluster:
    """The daemons; a node can be stopped, killed and started again."""

    def __init__(
        self, folder: Path, python: Path, token: str = "", patience_s: float = START_S
    ) -> None:
        """With a token the dashboard answers those alone who have it, as do Ray's daemons."""
        self._patience_s = patience_s
        self.token = token
        self.folder = folder
        self.shared = folder / "shared"
        self.gcs, self.client, dashboard = free_ports(3)
        self.address = f"http://{HEAD}:{dashboard}"
        self._dashboard = dashboard
        self._agents = dict(zip(("head", *NODES), free_ports(1 + len(NODES)), strict=True))
        path = f"{python.parent}:{os.environ['PATH']}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RAY_"))}
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token else {}
        self.environment = {**kept, **SMALL, **auth, "PATH": path}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        self.shared.mkdir(exist_ok=True)
        self.start_head()
        # One after the other: nodes that start together are too slow for each other.
        for node in NODES:
            self.start_node(node)

    def start_head(self) -> None:
        options = (
            "--head",
            f"--node-ip-address={HEAD}",
            f"--port={self.gcs}",
            f"--ray-client-server-port={self.client}",
            f"--dashboard-host={HEAD}",
            f"--dashboard-port={self._dashboard}",
            f"--temp-dir={self.folder}/r",
            "--num-cpus=0",
            "--num-gpus=0",
        )
        self._spawn("head", *options)
        self._eventually(lambda: len(self.nodes()) > 0, "head", options)

    def start_node(self, node: str) -> None:
        options = (
            f"--address={HEAD}:{self.gcs}",
            f"--node-ip-address={ADDRESSES[node]}",
            "--num-cpus=8",
            f"--num-gpus={GPUS}",
            "--memory=16000000000",
        )
        self._spawn(node, *options)
        self._eventually(lambda: self.is_alive(node), node, options)

    def _spawn(self, name: str, *options: str) -> None:
        command = (
            "ray",
            "start",
            f"--node-name={name}",
            f"--dashboard-agent-listen-port={self._agents[name]}",
            *COMMON,
            *options,
        )
        with (self.folder / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of the dashboard, None where there is none."""
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError, ValueError):
            return None

    def nodes(self) -> list[Any]:
        answer = self.request("GET", "/api/v0/nodes?detail=1")
        return answer["data"]["result"]["result"] if answer else []

    def is_alive(self, node: str) -> bool:
        return any(n["node_name"] == node and n["state"] == "ALIVE" for n in self.nodes())

    def jobs(self) -> list[Any]:
        return self.request("GET", "/api/jobs/") or []

    def signal(self, name: str, number: int, words: Sequence[str] = RAY) -> None:
        """Signal the processes on a node with one of these words, Ray's daemons and workers."""
        for process in _descendants(self._processes[name].pid):
            with suppress(psutil.NoSuchProcess):
                command = " ".join(process.cmdline())
                if any(word in command for word in words):
                    process.send_signal(number)

    def kill(self, name: str) -> None:
        """Kill a node with all of its daemons."""
        self.signal(name, signal.SIGKILL)
        self._processes[name].kill()
        self._processes[name].wait()

    def stop(self) -> None:
        for name in self._processes:
            for below in _descendants(self._processes[name].pid):
                with suppress(psutil.NoSuchProcess):
                    below.kill()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _eventually(self, holds: Callable[[], bool], daemon: str, again: tuple[str, ...]) -> None:
        """Wait for a daemon, and start it again where it gave up, as it does on a busy machine."""
        end_s = time.monotonic() + self._patience_s
        while not holds():
            if self._processes[daemon].poll() is not None:
                self._spawn(daemon, *again)
            if time.monotonic() > end_s:
                raise TimeoutError(f"{daemon} did not come up; see {self.folder}")
            time.sleep(0.2)


def _descendants(pid: int) -> list[psutil.Process]:
    """Return the processes below one."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


@contextmanager
def ray_cluster(
    folder: Path, python: Path, token: str = "", patience_s: float = START_S
) -> Iterator[RayCluster]:
    """Run a cluster in a folder, whose path has to be short for its sockets."""
    cluster = RayCluster(folder, python, token, patience_s)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def missing() -> str:
    """Return why Ray cannot be had here, empty if it can; it is installed on first use."""
    try:
        python()
    except EnvironmentMissing as reason:
        return str(reason)
    return ""


def python() -> Path:
    """Return the interpreter of Ray's environment. Raises EnvironmentMissing."""
    return python_of(environment("ray-2", ("ray[default]<3",)))
