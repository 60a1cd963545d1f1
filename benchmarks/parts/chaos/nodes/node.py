"""A node of a chaos run: a real agent behind a proxy that can lose its messages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.parts.agents.real_agent import PACKAGE
from infra.drills.hosts import Host
from infra.drills.proxy import Proxy
from infra.machine.process import Running, free_ports, spawn

STEP_NAME = "berth-step"
TOKENS = ("BERTH_WORKER_TOKEN", "BERTH_STEP_TOKEN")
GPU_TYPE = "bench"
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(slots=True)
class RealNode:
    """State, run folder, agent and link of one node; the agent is started again by the run.

    Its processes and control groups are those with its name, which no other run may have. It
    reaches its executor through a proxy, or from a host of its own.
    """

    node_id: str
    folder: Path
    proxy: Proxy | None
    gpus: int
    host: Host | None = None
    ca: Path | None = None
    """Of the certificates of gateway and executors; None where they do without TLS."""
    agent: Running | None = None
    package: Path = PACKAGE
    """Folder of the agent's package."""
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    async def join(self, gateway: str, token: str) -> None:
        """Join by a token; a proxy is the address of its executor."""
        self.folder.mkdir(mode=0o755)
        # One user: workers of all jobs append to the same files.
        lines = {"gpus": self.gpus, "gpu_type": GPU_TYPE, "cpus": 999.0, "mem_gib": 999.0}
        lines |= {
            "state": str(self.state),
            "run": str(self.run),
            "uid_first": 0,
            "private_tmp": False,
        }
        text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in lines.items())
        (self.folder / "config.toml").write_text(f"login_shell = false\n{text}\n")
        words = ["join", gateway, "--node-id", self.node_id]
        if self.proxy is not None:
            (port,) = free_ports(1)
            await self.proxy.start(port)
            words += ["--executor", f"http://127.0.0.1:{port}"]
        if self.ca is not None:
            words += ["--ca", str(self.ca)]
        await asyncio.to_thread(self._run, words, token)

    def _run(self, words: list[str], text: str = "") -> None:
        subprocess.run(
            self._command(*words),
            check=True,
            env=self._environment(),
            input=f"{text}\n".encode(),
            stdout=sys.stderr,
        )

    def _command(self, *words: str) -> list[str]:
        config = str(self.folder / "config.toml")
        command = [sys.executable, "-P", "-m", "berth_agent", "--config", config, *words]
        return command if self.host is None else self.host.command(command)

    def _environment(self) -> dict[str, str]:
        return {**self.env, "PYTHONPATH": str(self.package)}

    def start(self) -> None:
        """Start the agent; it ends with the thread that started it."""
        log = self.folder / "agent.log"
        self.agent = spawn(self.node_id, self._command("run"), log, self._environment())

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the agent's process alone."""
        assert self.agent is not None
        self.agent.process.send_signal(number)

    async def end_agent(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the agent's process, and it alone."""
        assert self.agent is not None
        self.send_signal(number)
        await asyncio.to_thread(self.agent.process.wait)

    def lease(self) -> dict[str, Any]:
        """Return the lease of the node, empty without one."""
        return read_json(self.run / "lease.json")

    def is_renewed_since(self, at_boot_ms: int) -> bool:
        """Return whether a heartbeat that was sent after this time was acknowledged."""
        lease = self.lease()
        is_held = lease.get("joined", False) and not lease.get("over", True)
        return bool(is_held and lease["sent_boot_ms"] > at_boot_ms)

    def steps(self) -> dict[str, int]:
        """Return the pid of each living step by its allocation."""
        return {folder.name.replace("-", "/"): pid for folder, pid in self._running()}

    def _running(self) -> list[tuple[Path, int]]:
        """Return the folder and the step of each running worker."""
        folders = [*(self.state / "allocations").glob("*")]
        states = [(folder, read_json(folder / "state.json")) for folder in folders]
        return [
            (folder, int(state["pid"]))
            for folder, state in states
            if state.get("phase") == "running" and psutil.pid_exists(state["pid"])
        ]

    def held(self) -> set[str]:
        """Return the allocations that the node holds."""
        return {
            folder.name.replace("-", "/")
            for folder in (self.state / "allocations").glob("*")
            if (folder / "order.json").exists()
        }

    def left_behind(self) -> list[str]:
        """Return processes, control groups and files of workers, of which none may be there."""
        processes = [f"process {p.pid} {' '.join(cmdline(p))[:80]}" for p in self.processes()]
        return [*processes, *map(str, self._files()), *map(str, self._groups_of_workers())]

    def finds_a_worker(self) -> bool:
        """Return whether `left_behind` has all of some running worker: its step, files and groups.

        Else it would look for the wrong names, and find nothing whatever was left.
        """
        pids = {process.pid for process in self.processes()}
        files, groups = set(self._files()), set(self._groups_of_workers())
        return any(
            pid in pids
            and folder in files
            and any(self.run / "telemetry" in file.parents for file in files)
            and groups.issuperset(map(Path, read_json(folder / "spec.json").get("cgroups", ["?"])))
            for folder, pid in self._running()
        )

    def processes(self) -> list[psutil.Process]:
        """Return the steps and workers of the node, by the marks in their environment.

        The spare process, which waits for the next worker, has not taken a step's name yet.
        """
        mark, spare = f"{self.node_id}:", f"{self.state}/spare"
        return [
            process
            for process in psutil.process_iter(["name"])
            if any(environ(process).get(name, "").startswith(mark) for name in TOKENS)
            and (process.info["name"] == STEP_NAME or cmdline(process)[-1:] != [spare])
        ]

    def _files(self) -> list[Path]:
        return [*(self.state / "allocations").glob("*"), *(self.run / "telemetry").glob("*")]

    def _groups_of_workers(self) -> list[Path]:
        return [group for parent in self._groups() for group in groups_below(parent)]

    def _groups(self) -> list[Path]:
        """Return the control groups below which those of the workers are."""
        prefix = f"berth-{self.node_id}-"
        return [group for group in groups_below(CGROUPS) if group.name.startswith(prefix)]

    async def remove(self) -> None:
        """End everything of the node and remove its control groups."""
        if self.proxy is not None:
            await self.proxy.stop()
        if self.agent is not None:
            self.agent.kill()
        while processes := self.processes():
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            await asyncio.sleep(0.05)
        for parent in self._groups():
            for group in (*reversed(groups_below(parent)), parent):
                with suppress(OSError):
                    group.rmdir()


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file, empty if there is none."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return document


def groups_below(folder: Path) -> list[Path]:
    """Return the folders below one; groups of workers go meanwhile, at which `rglob` raises."""
    return [Path(above, name) for above, names, _ in os.walk(folder) for name in names]


def environ(process: psutil.Process) -> dict[str, str]:
    """Return the environment of a process, empty if it has ended."""
    with suppress(psutil.Error, OSError):
        return dict(process.environ())
    return {}


def cmdline(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return list(process.cmdline())
    return []
