"""A folder with a step in it: the test plays the agent, everything else is real."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from berth_agent.linux import cgroups, files, processes
from berth_agent.linux.clocks import boot_ms
from berth_agent.step.spec import Spec
from berth_agent.token_names import TOKEN
from tests.patience import PATIENCE_S

AGENT = Path(__file__).parents[2] / "agent"
INCARNATION = "a" * 32
SUSPENDED_S = 100_000
JUMP = """
import os, time
def jump(read, *clocks):
    def present(*clock):
        is_later = os.path.exists({path!r}) and clock in clocks
        return read(*clock) + is_later * {seconds} * 10**9
    return present
time.clock_gettime_ns = jump(time.clock_gettime_ns, (time.CLOCK_BOOTTIME,))
time.time_ns = jump(time.time_ns, ())
"""


def until(reached: Callable[[], bool]) -> None:
    """Wait for a fact."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, "not reached"
        time.sleep(0.005)


class StepBench:
    """Runs `command` by a step; files are written as the agent would."""

    def __init__(self, tmp: Path, **changes: Any) -> None:
        self.launch_as: tuple[int, str, Path] | None = None
        """User, Python and package of the step; None: those of the test."""
        self.prelude = ""
        """Code that runs in the step before it begins."""
        self.within: list[str] = []
        """Command that runs the step's command, in a namespace of its own."""
        self.folder = tmp / "allocation"
        self.folder.mkdir()
        self.work = tmp / "work"
        self.work.mkdir(mode=0o755)
        self.lease_path = tmp / "lease.json"
        self.token = f"bench:{secrets.token_hex(8)}"
        self.values: dict[str, Any] = {
            "argv": ["/bin/true"],
            "env": {"PATH": "/usr/bin:/bin", TOKEN: self.token},
            "cwd": str(self.work),
            "private": False,
            "uid": None,
            "gid": 0,
            "groups": [],
            "umask": 0o022,
            "token": self.token,
            "incarnation": INCARNATION,
            "grace_s": 30.0,
            "walltime_s": None,
            "kill_s": 15.0,
            "output_bytes": 1024 * 1024,
            "cgroups": [],
            "pid_namespace": True,
            "lease": str(self.lease_path),
            "wake": str(tmp / "wake"),
            "reserve": "",
            "prolog": "",
            "epilog": "",
            "hook_env": {},
            "notes": [],
            "mounts": [],
            "kept": [],
            "hook_s": 30.0,
            **changes,
        }
        self.renew(3600)

    def renew(self, seconds: float | None, incarnation: str = INCARNATION) -> None:
        """Write a lease that ends in some seconds."""
        lease = {
            "incarnation": incarnation,
            "deadline_boot_ms": None if seconds is None else boot_ms() + round(seconds * 1000),
            "sent_boot_ms": boot_ms(),
            "terms_id": "t1",
        }
        files.write_atomic(str(self.lease_path), json.dumps(lease).encode())

    def launch(self) -> None:
        """Start the step process."""
        spec = self.folder / "spec.json"
        files.write_json(str(spec), Spec(self.values).to_json())
        uid, python, package = self.launch_as or (None, sys.executable, AGENT)
        if uid is not None:
            for path in (spec, self.lease_path):
                os.chown(path, uid, uid)
        code = f"import sys; sys.path.insert(0, {str(package)!r})\n{self.prelude}\n"
        code += "from berth_agent.step.main import main; sys.exit(main(sys.argv[1:]))"
        command = [*self.within, python, "-I", "-S", "-c", code, str(self.folder)]
        subprocess.run(command, check=True, timeout=PATIENCE_S, user=uid, group=uid)

    def prepare(self) -> None:
        self.launch()
        until(lambda: self.phase in ("prepared", "dead"))

    def go(self, **env: str) -> None:
        path = self.folder / "go.json"
        files.write_json(f"{path}.test", {"env": env})
        if self.launch_as is not None:
            os.chown(f"{path}.test", self.launch_as[0], self.launch_as[0])
        os.rename(f"{path}.test", path)
        self.wake()

    def start(self, script: str) -> None:
        """Prepare and start a shell script."""
        self.values["argv"] = ["sh", "-c", script]
        self.prepare()
        self.go()

    def stop(self, grace_s: float, reason: str = "stopped") -> None:
        """Leave a tombstone under the folder's lock."""
        lock = files.lock(str(self.folder / "lock"), wait=True)
        tombstone = {"grace_s": grace_s, "reason": reason}
        files.write_json(str(self.folder / "tombstone"), tombstone)
        if lock is not None:
            os.close(lock)
        self.wake()

    def wake(self) -> None:
        state = self.state
        if state:
            processes.kill(state["pid"], state["ticks"], signal.SIGUSR1)

    @property
    def state(self) -> dict[str, Any]:
        return files.read_json(str(self.folder / "state.json")) or {}

    @property
    def phase(self) -> str:
        return str(self.state.get("phase", ""))

    def end(self) -> dict[str, Any]:
        """Wait until the end is noted."""
        until(lambda: self.phase == "dead")
        return self.state

    def output(self) -> str:
        segments = sorted(
            self.folder.glob("output.log.*"), key=lambda p: int(p.name.rsplit(".", 1)[1])
        )
        return "".join(segment.read_text(errors="replace") for segment in segments)

    def line(self, start: str) -> str:
        """Wait for a whole line of the output."""

        def lines() -> list[str]:
            text = self.output()
            whole = text[: text.rfind("\n") + 1]
            return [line for line in whole.splitlines() if line.startswith(start)]

        until(lambda: bool(lines()))
        return lines()[0]

    def living(self) -> list[int]:
        """Return the living processes of the worker."""
        return list(processes.with_token(self.token))

    def kill_step(self) -> None:
        state = self.state
        os.kill(state["pid"], signal.SIGKILL)

    def _nothing_lives(self) -> bool:
        processes.kill_each(self.living())
        return not self.living()

    def close(self) -> None:
        """End whatever a failed test left."""
        state = self.state
        if state:
            processes.kill(state["pid"], state["ticks"])
        cgroups.kill_members(self.values["cgroups"])
        until(self._nothing_lives)
        cgroups.remove(self.values["cgroups"])


def clocks_that_jump(path: Path) -> str:
    """Return code that adds a day to the clocks of its process once there is a file at `path`.

    A running process sees that after a suspend; its clocks cannot be stepped from outside.
    """
    return JUMP.format(path=str(path), seconds=SUSPENDED_S)


def a_time_namespace(clock: str) -> list[str]:
    """Return the command before a command that adds a day to one clock of the machine."""
    words = ["unshare", "--time", "--kill-child", f"--{clock}", str(SUSPENDED_S)]
    tried = shutil.which(words[0]) and subprocess.run([*words, "true"], check=False)
    if not tried or tried.returncode != 0:
        pytest.skip("no time namespaces here")
    return words
