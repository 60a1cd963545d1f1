"""A terminal in a worker, read by a test in place of the agent."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import NamedTuple

from berth_agent.messages import TerminalRequest
from berth_agent.node.executor.terminal_program import TerminalProgram
from berth_agent.node.files.allocation import AllocationFolder
from tests.agent.step_bench import until


class Ended(NamedTuple):
    """The output of a program, and the status of its step."""

    output: str
    status: str


class OpenTerminal:
    """A terminal of the worker, read by the test."""

    def __init__(self, allocation: AllocationFolder, *command: str, tty: bool = False) -> None:
        self.program = TerminalProgram(
            allocation,
            TerminalRequest(
                terminal_id=secrets.token_hex(16),
                allocation_id=allocation.allocation_id,
                command=command,
                tty=tty,
                term="xterm" if tty else "",
                rows=33,
                columns=111,
            ),
        )
        self.output, self.status = b"", b""

    def read(self) -> bool:
        """Read what is there; return whether the program is known to have ended."""
        with suppress(BlockingIOError):
            self.status += os.read(self.program.status, 100)
        if b"S" in self.status:
            self.program.started()
            for descriptor in list(self.program.outputs):
                self.output += self.program.read(descriptor) or b""
        return b"W" in self.status or b"F" in self.status

    def until(self, text: str) -> None:
        def reached() -> bool:
            self.read()
            return text.encode() in self.output

        until(reached)

    def end(self) -> Ended:
        until(self.read)
        while self.program.outputs:
            self.read()
        self.program.close()
        return Ended(self.output.decode(), self.status.decode().replace("\n", " ").strip())
