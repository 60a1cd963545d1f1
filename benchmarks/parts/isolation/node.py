"""An agent whose jobs are confined as an installation's are, run by root or by an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.parts.isolation.delegated_groups import delegated_groups
from benchmarks.parts.stack import Bench
from berth_agent.core.environment import DEFAULT_PATH
from infra.machine.process import spawn

PACKAGE = Path(__file__).parents[3] / "agent"
ORDINARY_UID = 65_534
"""An agent that is not root runs as this user, and all of its jobs do."""
MOST_PIDS = 256
OUTPUT_MIB = 1
DISK_GIB = 0.5
IMAGE_GIB = 0.5
USER_PIDS = 400
"""Processes that the ordinary user may add to its own: without it a fork bomb would take the whole
machine."""
FOLDERS = Path("/var/lib")
"""Of the node, if this user may write there: below /tmp nothing of the machine is visible to a
job."""
FOLDER_MODE = 0o755
LOG_LINES = 20


@dataclass(frozen=True, slots=True)
class ConfinedNode:
    """A running agent with its folders, as its jobs see them."""

    folder: Path
    state: Path
    run: Path
    disk_gib: float = DISK_GIB
    output_mib: float = OUTPUT_MIB
    root: Path = Path("/")
    """Where this machine sees the root of the node, which may be that of a container."""

    def on_machine(self, path: Path) -> Path:
        """Return where this machine sees a path of the node."""
        return self.root / path.relative_to("/")

    def on_node(self, path: Path) -> Path:
        """Return what the node calls a path of this machine."""
        return Path("/") / path.relative_to(self.root)


@contextmanager
def confined_node(bench: Bench, token: str, name: str, uid: int) -> Iterator[ConfinedNode]:
    """Join and run an agent as this user; afterwards end it with all that it started."""
    folder = Path(tempfile.mkdtemp(prefix="berth-isolation-", dir=place_of_folders(FOLDERS)))
    try:
        folder.chmod(FOLDER_MODE)
        if uid != os.geteuid():
            os.chown(folder, uid, uid)
        node = ConfinedNode(folder, folder / "state", folder / "run")
        log = bench.stack.data_dir / "logs" / f"{name}.log"
        config = folder / "config.toml"
        config.write_text(
            f'state = "{node.state}"\nrun = "{node.run}"\ngpus = 8\ncpus = 8\nmem_gib = 8\n'
            f"max_pids = {MOST_PIDS}\noutput_mib = {OUTPUT_MIB}\nkill_s = 15.0\n"
            f"disk_gib = {DISK_GIB}\nimage_gib = {IMAGE_GIB}\n"
        )
        command = [*as_user(uid, os.geteuid()), interpreter_of(uid), "-P", "-m", "berth_agent"]
        command += ["--config", str(config)]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(_copied(folder))}
        join = [*command, "join", bench.stack.gateway, "--node-id", name]
        subprocess.run(join, check=True, env=env, input=f"{token}\n".encode(), stdout=sys.stderr)
        with delegated_groups(f"berth-isolation-{os.getpid()}", uid) as joining:
            agent = spawn("berth-agent", [*joining, *command, "run"], log, env)
            try:
                yield node
            except TimeoutError as error:
                end = log.read_text().splitlines()[-LOG_LINES:]
                raise TimeoutError("\n".join((str(error), *end))) from None
            finally:
                agent.stop()
                kill_all(processes_below(node))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def interpreter_of(uid: int) -> str:
    """Return a Python that this user may run: ours may lie in a folder of root."""
    system = shutil.which("python3", path=DEFAULT_PATH)
    return sys.executable if uid == os.geteuid() or system is None else system


def place_of_folders(usual: Path) -> Path:
    """Return the usual place, or the home of a user who may not write there."""
    return usual if os.access(usual, os.W_OK) else Path.home()


def as_user(uid: int, own_uid: int) -> list[str]:
    """Return the words before a command that runs as this user, with bounded processes.

    Jobs of root's agent have users and limits of their own.
    """
    if uid == 0:
        return []
    most = threads_of(uid) + USER_PIDS
    bounded = ["prlimit", f"--nproc={most}:{most}"]
    if uid == own_uid:
        return bounded
    return [*bounded, "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def threads_of(uid: int) -> int:
    """Return how many threads the user has on this machine, as its limit counts them."""
    threads = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            threads += process.num_threads() if process.uids().real == uid else 0
    return threads


def _copied(folder: Path) -> Path:
    """Return a copy of the agent's code: another user may not read the working tree."""
    shutil.copytree(PACKAGE / "berth_agent", folder / "code" / "berth_agent")
    return folder / "code"


def processes_below(node: ConfinedNode) -> list[psutil.Process]:
    """Return the processes of steps and workers of a node: their variables name its folders."""
    living = list[psutil.Process]()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            text = Path(f"/proc/{process.pid}/environ").read_bytes()
            text += Path(f"/proc/{process.pid}/cmdline").read_bytes()
            if str(node.folder).encode() in text:
                living.append(process)
    return living


def kill_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
