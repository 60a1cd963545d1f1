"""The terminal of the user, joined to one in a worker: raw keys, its size, and an exit code."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple

from berth_client.errors import NO_ANSWER, BerthError
from berth_client.terminal import END, STDERR, STDIN, STDIN_END, STDOUT, WINDOW, Terminal
from cli.api.failures import cli_errors
from cli.api.http import Api
from cli.errors import FAILED, CliError

CHUNK_BYTES = 16 * 1024
HIGH_BYTES = 128 * 1024
"""Unsent input above which no more is read."""
SILENT_S = 60.0
"""s without a frame after which the gateway counts as gone; it sends one each 10 s."""
REASONS = {
    "idle": "ended: no byte came or went for the longest time that the installation allows",
    "longest_time": "ended: it was open for the longest time that the installation allows",
    "not_permitted_any_more": "ended: the key, or the pool, does not permit it any more",
    "worker_ended": "ended with its worker: `berth show JOB` says how that ended",
    "cut_off": "cut off: the node or its executor is gone for now; what ran in it has ended",
}


class WindowSize(NamedTuple):
    """The size of a terminal."""

    rows: int
    columns: int

    @property
    def payload(self) -> bytes:
        return self.rows.to_bytes(2, "big") + self.columns.to_bytes(2, "big")


def window() -> WindowSize:
    """Return the size of the user's terminal."""
    try:
        raw = fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8)
    except OSError:
        return WindowSize(24, 80)
    rows, columns, _, _ = struct.unpack("HHHH", raw)
    return WindowSize(rows or 24, columns or 80)


def run_in_worker(
    client: Api, job: str, worker: int, command: list[str], has_tty: bool | None
) -> int:
    """Run a command, or a shell, in a worker; return its exit code. Raises CliError."""
    is_tty = os.isatty(0) and os.isatty(1) if has_tty is None else has_tty
    opening: dict[str, object] = {"command": command, "worker": worker, "tty": is_tty}
    if is_tty:
        size = window()
        opening |= {"term": os.environ.get("TERM", ""), "rows": size.rows, "columns": size.columns}
    with cli_errors(client.installation.folder):
        terminal = Terminal(client.installation, job, opening)
        try:
            with _raw(is_tty and os.isatty(0)), _resizes(is_tty) as resized:
                return _Relay(terminal, resized).run()
        finally:
            terminal.close()


class _Relay:
    """Bytes between the user's streams and the terminal."""

    def __init__(self, terminal: Terminal, resized: int) -> None:
        self._terminal = terminal
        self._resized = resized
        self._reads = True
        self._heard_s = monotonic()

    def run(self) -> int:
        """Return the exit code of the program. Raises BerthError, CliError."""
        while True:
            ready = self._wait()
            if self._resized in ready:
                os.read(self._resized, 4096)
                self._terminal.send(WINDOW, window().payload)
            if 0 in ready:
                self._read_input()
            self._terminal.flush()
            if self._terminal.fileno() in ready or self._terminal.has_pending:
                self._heard_s = monotonic()
                for kind, payload in self._terminal.receive():
                    if kind == END:
                        return _code_of(json.loads(payload))
                    self._show(kind, payload)
            if monotonic() - self._heard_s > SILENT_S:
                raise BerthError(0, NO_ANSWER, f"the gateway was silent for {SILENT_S:g} s")

    def _wait(self) -> set[int]:
        if self._terminal.has_pending:
            return {self._terminal.fileno()}
        poll = select.poll()
        poll.register(self._terminal, self._terminal.events)
        poll.register(self._resized, select.POLLIN)
        if self._reads and self._terminal.unsent < HIGH_BYTES:
            poll.register(0, select.POLLIN)
        return {descriptor for descriptor, _ in poll.poll(1000)}

    def _read_input(self) -> None:
        try:
            data = os.read(0, CHUNK_BYTES)
        except OSError:
            data = b""
        if data:
            self._terminal.send(STDIN, data)
        else:
            self._reads = False
            self._terminal.send(STDIN_END)

    def _show(self, kind: bytes, payload: bytes) -> None:
        if kind in (STDOUT, STDERR):
            view = memoryview(payload)
            while view:
                view = view[os.write(1 if kind == STDOUT else 2, view) :]


def _code_of(end: dict[str, object]) -> int:
    """Return the exit code at the end. Raises CliError where the program did not end by itself."""
    reason, code = str(end["reason"]), end["exit_code"]
    if reason == "ended" and isinstance(code, int):
        return code
    text = f"{reason}: {end['detail']}" if end["detail"] else REASONS.get(reason, reason)
    error = CliError(f"terminal {text}")
    error.code = code if isinstance(code, int) else FAILED
    raise error


@contextmanager
def _raw(is_raw: bool) -> Iterator[None]:
    """Let keys go to the program as they are, Ctrl-C among them, and set all back afterwards."""
    if not is_raw:
        yield
        return
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        sys.stdout.flush()


@contextmanager
def _resizes(is_tty: bool) -> Iterator[int]:
    """Yield a descriptor that is readable whenever the size of the window has changed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def note(*_: object) -> None:
        try:
            os.write(writer, b"w")
        except BlockingIOError:
            return

    before = signal.signal(signal.SIGWINCH, note) if is_tty else None
    try:
        yield reader
    finally:
        if is_tty:
            signal.signal(signal.SIGWINCH, before)
        os.close(reader)
        os.close(writer)
