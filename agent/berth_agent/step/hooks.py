"""The epilog: a process forked before the worker, since a step whose pid namespace ended cannot."""

from __future__ import annotations

import os

from berth_agent.linux.signals import signal
from berth_agent.step import child
from berth_agent.step.checks import execute_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from berth_agent.step.spec import Spec


class EpilogProcess:
    """Waits in a child until the worker is dead, or the step is, and runs the epilog then."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        reader, self._trigger = os.pipe()
        self._output, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(reader, writer)
        os.close(reader)
        os.close(writer)
        os.set_blocking(self._output, False)

    def finish(self) -> bytes:
        """Run the epilog; return its output, with a line of its failure if it failed."""
        os.close(self._trigger)
        output = bytearray()
        try:
            ended = child.wait_for_end(self.pid, self._output, output, self._spec.hook_s)
        finally:
            os.close(self._output)
        if not ended:
            os.killpg(self.pid, signal.SIGKILL)
            return bytes(output) + self._failure(f"no end within {self._spec.hook_s:g} s")
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return bytes(output) + (self._failure(f"exit code {code}") if code else b"")

    def _failure(self, detail: str) -> bytes:
        return f"berth: the epilog failed: {self._spec.epilog}: {detail}\n".encode()

    def _run(self, reader: int, writer: int) -> NoReturn:
        try:
            os.setsid()
            os.dup2(reader, 0)
            os.dup2(writer, 1)
            os.dup2(writer, 2)
            os.closerange(3, child.OPEN_FILES)
            os.read(0, 1)
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            child.reset_signals()
            execute_hook(self._spec.epilog, self._spec)
        except OSError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(126)
