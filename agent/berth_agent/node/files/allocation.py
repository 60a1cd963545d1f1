"""The folder of one allocation: what was ordered, and what its step noted."""

from __future__ import annotations

import hashlib
import os
import re
import signal
from dataclasses import dataclass, field
from typing import Any, get_args

from berth_agent import file_names
from berth_agent.core.reports import Stage, WorkerView
from berth_agent.linux import cgroups, files, processes
from berth_agent.messages import Launch, Order

PLAIN_ID = re.compile(r"\d+/\d+/\d+/\d+")
SECRET_FILES = (file_names.SPEC, file_names.ORDER)
SIGNALLED = signal.SIGUSR1
STEP_LOG_CHARS = 500
SPARE_MS = 5_000
"""After a deadline or a grace, until the agent does what the step should have done."""


def folder_name(allocation_id: str) -> str:
    """Return the name of the folder: an id is input of the network, and never a path."""
    if PLAIN_ID.fullmatch(allocation_id):
        return allocation_id.replace("/", "-")
    return f"x{hashlib.sha256(allocation_id.encode()).hexdigest()[:32]}"


def move_to_ended(folder: str, ended: str) -> str:
    """Move a folder, without its secrets, to the ended ones; return its new path. Raises OSError.

    Where there is one of its name, as after a restored ledger, it gets a number.
    """
    for name in SECRET_FILES:
        if os.path.exists(f"{folder}/{name}"):
            os.unlink(f"{folder}/{name}")
    base = path = f"{ended}/{os.path.basename(folder)}"
    number = 1
    while os.path.lexists(path):
        number += 1
        path = f"{base}.{number}"
    os.utime(folder)
    os.rename(folder, path)
    return path


@dataclass(slots=True)
class AllocationFolder:
    """A worker that the agent holds; used under the agent's lock."""

    folder: str
    order: Order
    token: str
    master_port: int | None = None
    secrets_file: str = ""
    """File in memory with values of its secrets, until the step takes them; empty: it has none."""
    state: dict[str, Any] = field(default_factory=dict)
    reported: set[Stage] = field(default_factory=set)
    released: bool = False
    """The ledger released it: its end is of no interest any more."""
    fenced: bool = False
    launching: bool = False
    """The agent is preparing the step, which does not live yet."""
    launch_failure: dict[str, Any] | None = None
    kill_due_ms: int | None = None
    """When the agent kills a step that did not obey a stop."""
    killed_ms: int | None = None
    """When the agent itself began to kill."""

    @property
    def allocation_id(self) -> str:
        return self.order.allocation_id

    @property
    def launch(self) -> Launch:
        assert self.order.launch is not None, "only a prepare with a launch is noted"
        return self.order.launch

    @property
    def phase(self) -> str:
        return str(self.state.get("phase", ""))

    @property
    def is_dead(self) -> bool:
        return self.phase == "dead"

    def view(self) -> WorkerView:
        return WorkerView(
            self.allocation_id, self.state, self.master_port, frozenset(self.reported)
        )

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def write_order(self) -> None:
        """Note the order before it has an effect. Raises OSError.

        It is gone with its incarnation after a reboot, and an order at or below the position that
        is on disk never starts without it.
        """
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        values = {
            "order": self.order.to_json(),
            "token": self.token,
            "master_port": self.master_port,
            "secrets_file": self.secrets_file,
        }
        files.replace_json(self.path(file_names.ORDER), values)

    def note_go(self, variables: dict[str, str]) -> None:
        """Note the order to start. Raises OSError."""
        files.replace_json(self.path(file_names.GO), {"env": variables})

    def note_reported(self, stage: Stage) -> None:
        """Note that a report is in the outbox; losing the note repeats it. Raises OSError."""
        self.reported.add(stage)
        files.write_atomic(self.path(file_names.REPORTED), " ".join(sorted(self.reported)).encode())

    def stop(self, grace_s: float, reason: str, now_ms: int, detail: str = "") -> None:
        """Stop the worker for good; where its step is just starting, the next tick does it.

        Raises OSError.
        """
        if self.is_dead:
            return
        # Before the write: a disk that refuses it does not put the kill off.
        due_ms = now_ms + round(grace_s * 1000) + SPARE_MS
        self.kill_due_ms = min(due_ms, self.kill_due_ms or due_ms)
        if not self.leave_tombstone(grace_s, reason, detail):
            self.note_stop(grace_s, reason)

    def note_stop(self, grace_s: float, reason: str) -> None:
        """Note a stop whose tombstone has to wait for the lock. Raises OSError."""
        files.write_json(self.path(file_names.STOP), {"grace_s": grace_s, "reason": reason})

    def noted_stop(self) -> dict[str, Any] | None:
        """Return a stop that was noted and has no tombstone yet."""
        if self.tombstone() is not None:
            return None
        try:
            document = files.read_json(self.path(file_names.STOP))
        except ValueError:
            return {"grace_s": 0.0, "reason": "stopped"}
        return document if isinstance(document, dict) else None

    def leave_tombstone(self, grace_s: float, reason: str, detail: str = "") -> bool:
        """Stop the worker for good; return whether the tombstone is durable now.

        A step that is just starting holds the lock: then it is tried again. A shorter grace
        replaces a longer one. Raises OSError.
        """
        lock = files.lock(self.path(file_names.LOCK), wait=False)
        if lock is None:
            return False
        try:
            present = self.tombstone()
            if present is None or grace_s < float(present["grace_s"]):
                first = present or {"reason": reason, "detail": detail}
                files.write_json(self.path(file_names.TOMBSTONE), {**first, "grace_s": grace_s})
        finally:
            os.close(lock)
        self.wake()
        return True

    def tombstone(self) -> dict[str, Any] | None:
        """Return the tombstone; a damaged one stops at once."""
        try:
            document = files.read_json(self.path(file_names.TOMBSTONE))
        except ValueError:
            return {"grace_s": 0.0, "reason": "stopped"}
        return document if isinstance(document, dict) else None

    def has_go(self) -> bool:
        return os.path.exists(self.path(file_names.GO))

    def waits_alone(self) -> bool:
        """Return whether its readiness is reported, and only that has to be acknowledged before it
        starts.

        Its step sees to it that nothing is started after a stop, or without a lease.
        """
        is_ready = self.launch.starts_alone and self.phase == "prepared"
        return is_ready and "ready" in self.reported and not self.has_go()

    def read_state(self) -> None:
        """Take what the step noted since."""
        try:
            document = files.read_json(self.path(file_names.STATE))
        except (OSError, ValueError):
            return
        if isinstance(document, dict):
            self.state = document

    def write_end(self, **values: object) -> None:
        """Note the end of a worker whose step could not. Raises OSError."""
        end: dict[str, Any] = {"exit_code": None, "ran_ms": 0, "failure": None, "stopped": False}
        self.state = {"started": False, **end, **self.state, "phase": "dead", **values}
        files.write_json(self.path(file_names.STATE), self.state)
        self.remove_secrets()

    def remove_secrets(self) -> None:
        """Remove values of secrets that no step takes any more. Raises OSError."""
        if self.secrets_file and os.path.exists(self.secrets_file):
            os.unlink(self.secrets_file)

    def is_step_alive(self) -> bool:
        """Return whether the step lives; one that was forked and wrote nothing yet counts too."""
        pid, ticks = self.state.get("pid", 0), self.state.get("ticks", 0)
        if pid:
            return processes.is_alive(int(pid), int(ticks))
        return files.is_locked(self.path(file_names.ALIVE))

    def leftovers(self) -> set[int]:
        """Return living processes of the worker itself."""
        pids = set(processes.with_token(self.token)) | cgroups.members(self.cgroups())
        init, ticks = int(self.state.get("init_pid", 0)), int(self.state.get("init_ticks", 0))
        return pids | {init} if processes.is_alive(init, ticks) else pids

    def cgroups(self) -> list[str]:
        try:
            return [
                str(folder) for folder in files.read_json(self.path(file_names.SPEC))["cgroups"]
            ]
        except (OSError, ValueError, TypeError, KeyError):
            return []

    def kill_step(self) -> None:
        """Kill the step, by what was read of it: nothing of the disk is needed."""
        pid, ticks = int(self.state.get("pid", 0)), int(self.state.get("ticks", 0))
        processes.kill(pid, ticks)

    def kill(self) -> None:
        """Kill the step, with which the kernel kills its worker, and whatever else lives."""
        self.kill_step()
        cgroups.kill_members(self.cgroups())
        processes.kill_each(self.leftovers())

    def wake(self) -> None:
        """Let the step look at its folder at once."""
        pid, ticks = int(self.state.get("pid", 0)), int(self.state.get("ticks", 0))
        processes.kill(pid, ticks, SIGNALLED)

    def noted_terms(self) -> str:
        """Return the terms that the step has read a deadline of."""
        return (files.read_bytes(self.path(file_names.TERMS)) or b"").decode(errors="replace")

    def step_log(self) -> str:
        """Return the end of what the step itself complained of."""
        text = (files.read_bytes(self.path(file_names.STEP_LOG)) or b"").decode(errors="replace")
        return " ".join(text.split())[-STEP_LOG_CHARS:]

    def retire(self, ended: str) -> None:
        """Move the folder, without its secrets, to the ended ones; its output stays in it."""
        cgroups.remove(self.cgroups())
        self.remove_secrets()
        self.folder = move_to_ended(self.folder, ended)


def read_folder(folder: str) -> AllocationFolder | None:
    """Read a folder after a restart; None where no order was noted. Raises OSError."""
    try:
        document = files.read_json(f"{folder}/{file_names.ORDER}")
        if document is None:
            return None
        order = Order.from_json(document["order"])
        allocation = AllocationFolder(
            folder,
            order,
            str(document["token"]),
            document["master_port"],
            str(document.get("secrets_file", "")),
        )
    except (ValueError, TypeError, KeyError):
        return None
    reported = (files.read_bytes(f"{folder}/{file_names.REPORTED}") or b"").decode().split()
    allocation.reported = {stage for stage in get_args(Stage) if stage in reported}
    allocation.read_state()
    return allocation
