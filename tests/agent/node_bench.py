"""An agent as a real process, with an executor double: the test plays placement."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from berth_agent.linux import files, processes
from berth_agent.node.credentials.identity import Identity, write_identity
from berth_agent.node.system.machine import BOARD
from berth_agent.token_names import STEP_TOKEN, TOKEN
from berth_agent.tokens import NodeTokens
from tests.agent.executor_double import ExecutorDouble
from tests.agent.step_bench import AGENT, until
from tests.patience import PATIENCE_S

NODE = f"node-{os.getpid()}"
INSTALLATION = "0a1b2c3d4e5f"
W = "0/5/0/0"
"""The worker of a test that has one."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def launch(command: list[str] | str, **fields: Any) -> dict[str, Any]:
    """Return a launch of one worker of one node."""
    return {
        "job_id": "j1",
        "tenant": "vision",
        "attempt": 1,
        "rank": 0,
        "world_size": 1,
        "local_rank": 0,
        "local_world_size": 1,
        "node_rank": 0,
        "nodes": 1,
        "gpus": [0],
        "gpu_milli": 1000,
        "cpus": 0,
        "mem_gib": 0,
        "command": ["sh", "-c", command] if isinstance(command, str) else command,
        "grace_s": 5.0,
        **fields,
    }


def is_spare(pid: int) -> bool:
    """Return whether a process waits for a step: one that became a step has that name."""
    try:
        process = Path(f"/proc/{pid}")
        arguments = (process / "cmdline").read_bytes().rstrip(b"\0")
        return arguments.endswith(b"/spare") and (process / "comm").read_text() != "berth-step\n"
    except OSError:
        return False


class NodeBench:
    """State, run folder and process of one agent."""

    def __init__(self, folder: Path, node_id: str, *executors: str) -> None:
        self.node_id = node_id
        self.installation = INSTALLATION
        self.state = folder / "state"
        self.run_folder = folder / "run"
        self.state.mkdir(mode=0o711)
        self.config = folder / "config.toml"
        self.settings: dict[str, Any] = {
            "gpus": 2,
            "cgroups": False,
            "login_shell": False,
            "hook_s": 30.0,
            "private_tmp": False,
            "uid_first": 0,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / "agent.log"
        self.code = AGENT
        """Folder of the agent's package."""
        self.within: list[str] = []
        """Command that runs the agent's command, in namespaces of its own."""
        self.join(*executors)

    def join(self, *executors: str) -> None:
        """Write the identity that `berth-agent join` would."""
        identity = Identity(
            node_id=self.node_id,
            pool="p",
            secret="s" * 64,
            gateway="",
            executors=executors,
            expires_at=2**53,
            approved=True,
            ca="",
            installation=self.installation,
        )
        write_identity(str(self.state), identity)

    def command(self, *arguments: str) -> list[str]:
        lines = [f"{name} = {json.dumps(value)}" for name, value in self.settings.items()]
        self.config.write_text("\n".join(lines))
        flags = ["--state", str(self.state), "--run", str(self.run_folder)]
        config = ["--config", str(self.config)]
        return [sys.executable, "-m", "berth_agent", *config, *arguments, *flags]

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.code)}

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.within, *self.command("run")], env=self.environment(), stdout=log, stderr=log
            )

    def move(self) -> None:
        """Run the agent from now on in what it sees as another machine: boot, board, processes."""
        made = self.state.parent / "uuid"
        made.write_text(f"{uuid4()}\n")
        board = f"if [ -e {BOARD} ]; then mount --bind {made} {BOARD}; fi"
        script = f'mount --bind {made} {BOOT_ID} && {board} && exec "$@"'
        namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self.within = ["unshare", *namespaces, "sh", "-c", script, "sh"]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the agent beside it."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def status(self) -> dict[str, Any]:
        return files.read_json(str(self.run_folder / "status.json")) or {}

    def kill(self, number: int = signal.SIGKILL) -> int:
        """End the agent's process, and it alone."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def folder(self, allocation_id: str) -> Path:
        return self.state / "allocations" / allocation_id.replace("/", "-")

    def step(self, allocation_id: str) -> dict[str, Any]:
        return files.read_json(str(self.folder(allocation_id) / "state.json")) or {}

    def output(self, allocation_id: str) -> str:
        return "".join(
            path.read_text() for path in sorted(self.folder(allocation_id).glob("output.log.*"))
        )

    def living(self) -> list[int]:
        """Return living steps and workers of the node, and not of one of its name elsewhere.

        The spare process of its agent is none yet.
        """
        tokens = NodeTokens(self.node_id, self.installation)
        pids = processes.with_token(tokens.prefix, (TOKEN, STEP_TOKEN))
        return [pid for pid in pids if not is_spare(pid)]

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

        def nothing_lives() -> bool:
            processes.kill_each(self.living())
            return not self.living()

        until(nothing_lives)
        work = Path(self.settings.get("work", self.state / "work"))
        for note in work.glob(".scratch/*/memory"):
            shutil.rmtree(note.read_text(), ignore_errors=True)


@contextmanager
def a_node(
    double: ExecutorDouble, name: str = NODE, *more: str, start: bool = True, **settings: Any
) -> Iterator[NodeBench]:
    """A node that has joined and, unless said otherwise, runs its agent."""
    with tempfile.TemporaryDirectory(prefix="berth-node-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        bench = NodeBench(Path(folder), name, double.url, *more)
        bench.settings |= settings
        try:
            if start:
                bench.start()
                double.wait(lambda: double.joined is not None)
            yield bench
        finally:
            bench.close()


@contextmanager
def a_deaf_process() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that ends by SIGKILL alone of the signals that a step gets."""
    command = ["sh", "-c", "trap '' USR1 TERM; echo up; exec sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield process
        finally:
            process.kill()


def run(double: ExecutorDouble, command: str, name: str = W, **fields: object) -> None:
    """Prepare and start a worker."""
    double.order("prepare", name, launch=launch(command, **fields))
    double.wait_for("ready", name)
    double.order("go", name)


def line(node: NodeBench, start: str, name: str = W) -> None:
    until(lambda: start in node.output(name))
