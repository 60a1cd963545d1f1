"""The program of a terminal as the agent sees it: its streams, its status, and its life.

The step runs it. Everything else of the worker is out of reach of these descriptors.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import termios

from berth_agent import file_names
from berth_agent.linux import files
from berth_agent.messages import TerminalRequest
from berth_agent.node.files.allocation import AllocationFolder

CHUNK_BYTES = 32 * 1024


class TerminalRefused(Exception):
    """A terminal cannot be opened here; the reason is for machines."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class TerminalProgram:
    """Streams by number: 0 for input, 1 and 2 for output; a terminal has one for all."""

    def __init__(self, allocation: AllocationFolder, request: TerminalRequest) -> None:
        """Leave the request for the step. Raises OSError."""
        self.folder = f"{allocation.folder}/{file_names.TERMINALS}/{request.terminal_id}"
        self._open: set[int] = set()
        self.outputs: dict[int, int] = {}
        """Number of each stream that may still have output, by descriptor."""
        self.input: int | None = None
        os.makedirs(os.path.dirname(self.folder), mode=0o700, exist_ok=True)
        os.mkdir(self.folder, 0o700)
        try:
            self._life = self._fifo(file_names.LIFE_FIFO, os.O_RDWR)
            self.status = self._fifo(file_names.STATUS_FIFO, os.O_RDONLY)
            tty = self._open_tty(allocation, request) if request.tty else self._open_pipes()
            values = {"tty": tty, "term": request.term, "command": list(request.command)}
            files.write_json(f"{self.folder}/{file_names.REQUEST}", values)
        except OSError:
            self.close()
            raise
        allocation.wake()

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the window, of which the program gets a signal; pipes have none."""
        if self.input is not None and self.input in self.outputs:
            fcntl.ioctl(self.input, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data: bytes) -> int:
        """Write input; return how much was taken. Raises OSError where no program reads it."""
        if self.input is None:
            return len(data)
        try:
            return os.write(self.input, data)
        except BlockingIOError:
            return 0

    def end_input(self) -> None:
        """Let the program read an end of file: a terminal types the character for it."""
        if self.input is None:
            return
        if self.input in self.outputs:
            self.write(b"\x04")
        else:
            self._close(self.input)
            self.input = None

    def read(self, descriptor: int) -> bytes | None:
        """Return output, None where none is there; empty once there is none any more."""
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            # Of a terminal that no program has open any more.
            data = b""
        if not data:
            del self.outputs[descriptor]
            if descriptor == self.input:
                self.input = None
            self._close(descriptor)
        return data

    def close(self) -> None:
        """Give the program up: the step ends what is left of it."""
        for descriptor in list(self._open):
            self._close(descriptor)
        self.outputs.clear()
        self.input = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _open_tty(self, allocation: AllocationFolder, request: TerminalRequest) -> str:
        """Open a terminal that belongs to the worker's user; return its name."""
        master, slave = os.openpty()
        try:
            os.set_blocking(master, False)
            self._open.add(master)
            self.input, self.outputs[master] = master, 1
            spec = files.read_json(allocation.path(file_names.SPEC)) or {}
            if spec.get("uid") is not None:
                os.fchown(slave, int(spec["uid"]), -1)
            os.fchmod(slave, 0o620 if spec.get("uid") is not None else 0o600)
            self.resize(request.rows, request.columns)
            # Held until the program has it: a terminal that no process has open is at its end.
            self._slave = slave
            self._open.add(slave)
            return os.ttyname(slave)
        except OSError:
            self._close(master)
            os.close(slave)
            raise

    def started(self) -> None:
        """Give up what was held until the program has it, so that its end is seen."""
        slave = getattr(self, "_slave", None)
        if slave in self._open:
            self._close(slave)

    def _open_pipes(self) -> str:
        self.input = self._fifo("in", os.O_RDWR)
        for number, name in ((1, "out"), (2, "err")):
            self.outputs[self._fifo(name, os.O_RDONLY)] = number
        return ""

    def _fifo(self, name: str, flags: int) -> int:
        path = f"{self.folder}/{name}"
        os.mkfifo(path, 0o600)
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
        self._open.add(descriptor)
        return descriptor

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)
