"""The state of a step: replaced by rename, its end durably; a FIFO wakes the agent."""

from __future__ import annotations

import os
import time

from berth_agent import file_names
from berth_agent.linux import files, processes
from berth_agent.linux.disk_reserve import write_on_full_disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RETRY_S = 1.0


class StateFile:
    """The phase that the agent reads: `preparing`, then those of the contract."""

    def __init__(self, folder: str, wake: str, reserve: str) -> None:
        pid = os.getpid()
        self._path = f"{folder}/{file_names.STATE}"
        self._wake = wake
        self._reserve = reserve
        self._values: dict[str, Any] = {
            "phase": "preparing",
            "pid": pid,
            "ticks": processes.started_ticks(pid),
            "init_pid": 0,
            "init_ticks": 0,
            "started": False,
            "began_ms": 0,
            "terminals": True,
            "stopped": False,
            "exit_code": None,
            "ran_ms": 0,
            "failure": None,
        }

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def note(self, phase: str, **values: object) -> None:
        """Note a phase before the end, with which a reboot ends too. Raises OSError."""
        self._values |= {"phase": phase, **values}
        files.replace_json(self._path, self._values)
        self.wake_agent()

    def try_note(self, phase: str, **values: object) -> None:
        """Note a phase that informs only: a full disk is no reason to stop."""
        try:
            self.note(phase, **values)
        except OSError as error:
            os.write(2, f"phase {phase} cannot be noted: {error}\n".encode())

    def note_end(self, phase: str, **values: object) -> None:
        """Make an end durable, on a full disk by its reserve; it tries until there is room."""
        while True:
            try:
                write_on_full_disk(self._reserve, lambda: self._note_durably(phase, **values))
            except FileNotFoundError:
                # The folder is gone: this end is not awaited any more.
                return
            except OSError as error:
                os.write(2, f"the end cannot be noted: {error}\n".encode())
                time.sleep(RETRY_S)
            else:
                return

    def _note_durably(self, phase: str, **values: object) -> None:
        self._values |= {"phase": phase, **values}
        files.write_json(self._path, self._values)
        self.wake_agent()

    def wake_agent(self) -> None:
        """Write to the agent's FIFO; an agent that is away looks at the folders when it starts."""
        try:
            descriptor = os.open(self._wake, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.write(descriptor, b"s")
        except OSError:
            return
        finally:
            os.close(descriptor)
