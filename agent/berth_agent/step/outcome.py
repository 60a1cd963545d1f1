"""The end of a worker: the reason and the detail that users see. Pure."""

from __future__ import annotations

import errno
import os

from berth_agent.linux.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from berth_agent.step.spec import Spec

CANNOT_RUN = 126
NOT_FOUND = 127
ENGINE_FAILED = 125
ENGINE_ERROR = "Error: "
DISK_LIMIT = "disk_limit"
LIMITS = ("walltime", "fenced", DISK_LIMIT)
"""Reasons that hold whatever the exit code: the worker did not end by itself."""


class Outcome:
    """Collects the init's messages, and what was requested."""

    __slots__ = (
        "_error",
        "_has_code",
        "_signal",
        "detail",
        "exit_code",
        "permanent",
        "ran_ms",
        "reason",
    )

    def __init__(self) -> None:
        self.exit_code = 128 + signal.SIGKILL
        self.ran_ms = 0
        self.reason = ""
        self.detail = ""
        self.permanent = False
        self._error: int | None = None
        self._has_code = False
        self._signal = 0

    def take_messages(self, text: str) -> None:
        """Take lines of the init: `W` wait status, `X` errno of exec, `F` errno before it."""
        for line in text.splitlines():
            kind, number = line[:1], int(line[1:] or 0)
            if kind == "W":
                self._take_code(number)
            elif kind == "X":
                self._error = number
            elif kind == "F":
                self.exit_code, self._has_code = CANNOT_RUN, True
                self.reason, self.detail = "start_failed", os.strerror(number)

    def take_init_status(self, status: int) -> None:
        """Take the wait status of the init, which counts if none of the program was received."""
        if not self._has_code:
            self._take_code(status)

    def judge(self, requested: str, spec: Spec, oom: bool, detail: str = "") -> None:
        """Decide on the reason; `requested` is the first request to end it, if any, and `detail`
        what the agent noted with it.
        """
        if requested in LIMITS:
            self.reason, self.detail = requested, detail or _limit_detail(requested, spec)
        elif self._error is not None:
            self._judge_exec(self._error, spec)
        elif self.reason or requested or self.exit_code == 0:
            return
        elif oom:
            self.reason = "out_of_memory"
            self.detail = "the worker used more than the memory of its allocation"
        elif self._signal:
            self.reason, self.detail = "signal", _signal_name(self._signal)
        else:
            self.reason, self.detail = "exit_code", f"exit code {self.exit_code}"

    def judge_engine(self, last_line: str) -> None:
        """Take the reason from the engine of a container where it, and no program, has ended."""
        reasons = {
            ENGINE_FAILED: "container_failed",
            CANNOT_RUN: "command_forbidden",
            NOT_FOUND: "command_missing",
        }
        reason = reasons.get(self.exit_code)
        if self.reason == "exit_code" and reason and last_line.startswith(ENGINE_ERROR):
            self.reason, self.detail = reason, last_line.removeprefix(ENGINE_ERROR)
            self.permanent = reason != "container_failed"

    def _take_code(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self._signal = max(0, -code)
        self.exit_code = 128 + self._signal if self._signal else code
        self._has_code = True

    def _judge_exec(self, number: int, spec: Spec) -> None:
        reasons = {errno.ENOENT: "command_missing", errno.EACCES: "command_forbidden"}
        self.reason = reasons.get(number, "command_unusable")
        self.detail = f"{spec.argv[0][:200]}: {os.strerror(number)}"
        self.exit_code = NOT_FOUND if number == errno.ENOENT else CANNOT_RUN
        self.permanent = True


def _limit_detail(requested: str, spec: Spec) -> str:
    if requested == "walltime" and spec.walltime_s is not None:
        return f"the walltime of {spec.walltime_s:g} s is over"
    return "the lease of the node is over, or its incarnation was fenced"


def _signal_name(number: int) -> str:
    """Return the name, of two the first: those of Linux are sorted like the usual ones."""
    names = (name for name in sorted(dir(signal)) if name[:3] == "SIG" and name[3] != "_")
    return next((name for name in names if getattr(signal, name) == number), f"signal {number}")
