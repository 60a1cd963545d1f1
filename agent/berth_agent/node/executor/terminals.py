"""Terminals of this node: a thread each, between its executor and the program in a worker."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import threading
from time import monotonic, sleep

from berth_agent.messages import TERMINAL_PATH, TerminalRequest
from berth_agent.node.agent import Agent
from berth_agent.node.connection.http import RequestFailed, parse_address
from berth_agent.node.connection.websocket import Closed, WebSocket
from berth_agent.node.credentials.executor_access import ExecutorAccess
from berth_agent.node.executor.terminal_program import TerminalProgram, TerminalRefused
from berth_agent.node.files.allocation import AllocationFolder

MOST = 32
"""Terminals of a node."""
START_S = 15.0
"""Longest s until the step has started the program."""
HELD = "its worker may be stopped for a drill, or as its node is cut off"
WORKER_S = 10.0
COMING = ("", "preparing", "prepared", "starting")
"""Phases of a worker whose start was ordered a moment ago."""
HIGH_BYTES = 128 * 1024
"""Unsent output above which no more is read: the program then waits for its reader."""
MAX_INPUT_BYTES = 256 * 1024
REST_S = 2.0
"""Longest s in which the rest of the output is sent after the end."""
STDIN, STDIN_END, WINDOW = b"I", b"E", b"W"
STREAMS = {1: b"O", 2: b"R"}
STARTED, END = b"S", b"X"

log = logging.getLogger(__name__)


class NodeTerminals:
    """Opens terminals that executors request; any thread may call it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._open: set[str] = set()
        self._lock = threading.Lock()

    def open(
        self, request: TerminalRequest, url: str, access: ExecutorAccess, session_id: str
    ) -> None:
        """Serve a terminal in a thread of its own."""
        with self._lock:
            if request.terminal_id in self._open or len(self._open) >= MOST:
                return
            self._open.add(request.terminal_id)

        def run() -> None:
            try:
                self._serve(request, url, access, session_id)
            except (OSError, RequestFailed, Closed, ValueError) as error:
                log.warning("terminal %s: %s", request.terminal_id, error)
            finally:
                with self._lock:
                    self._open.discard(request.terminal_id)

        threading.Thread(target=run, daemon=True, name="terminal").start()

    def _serve(
        self, request: TerminalRequest, url: str, access: ExecutorAccess, session_id: str
    ) -> None:
        headers = {"Authorization": f"Bearer {access.credential}", "Berth-Session": session_id}
        path = f"{TERMINAL_PATH}/{request.terminal_id}"
        socket = WebSocket(parse_address(url), access.tls, path, headers, START_S)
        try:
            program = TerminalProgram(self._allocation(request), request)
        except TerminalRefused as refusal:
            socket.send(_end(refusal.reason, str(refusal)))
            socket.close()
            return
        except OSError as error:
            socket.send(_end("terminal_failed", str(error)))
            socket.close()
            return
        try:
            _Relay(socket, program).run()
        finally:
            program.close()
            socket.close()

    def _allocation(self, request: TerminalRequest) -> AllocationFolder:
        """Return the worker once a terminal can be opened in it. Raises TerminalRefused."""
        ends_s = monotonic() + WORKER_S
        while True:
            allocation = self._held(request.allocation_id)
            if allocation.phase not in COMING or monotonic() >= ends_s:
                break
            sleep(0.05)
        if not allocation.state.get("terminals"):
            detail = "the worker was started by an agent of an earlier release"
            raise TerminalRefused("step_too_old", detail)
        if allocation.phase != "running":
            detail = f"worker: {allocation.phase}; a running one is required"
            raise TerminalRefused("worker_not_running", detail)
        return allocation

    def _held(self, allocation_id: str) -> AllocationFolder:
        """Return a worker of the node, as its step noted it last. Raises TerminalRefused."""
        with self._agent.lock:
            for allocation in self._agent.workers:
                if allocation.allocation_id == allocation_id:
                    allocation.read_state()
                    return allocation
        raise TerminalRefused("worker_not_running", "the node has no such worker any more")


class _Relay:
    """Bytes between a WebSocket and a program, until the program has ended or the user is gone."""

    def __init__(self, socket: WebSocket, program: TerminalProgram) -> None:
        self._socket = socket
        self._program = program
        self._input = bytearray()
        self._input_ends = False
        self._status = b""
        self._is_started = False
        self._end: bytes | None = None

    def run(self) -> None:
        """Relay until the program has ended. Raises OSError and Closed once the user is gone."""
        begun_s = monotonic()
        while self._end is None:
            if not self._is_started and monotonic() - begun_s > START_S:
                self._end = _end("terminal_failed", f"not started within {START_S:g} s: {HELD}")
                break
            self._turn(0 if self._socket.has_pending else 1000)
        self._drain()
        self._socket.send(self._end)
        self._await_close()

    def _await_close(self) -> None:
        """Wait until the executor has the end: a close with input unread would take it back."""
        ends_s = monotonic() + REST_S
        while monotonic() < ends_s:
            _poll([(self._socket.fileno(), self._socket.events)], 200)
            self._socket.flush()
            try:
                self._socket.receive()
            except (Closed, OSError):
                return

    def _turn(self, wait_ms: int) -> None:
        program, socket = self._program, self._socket
        watched = [(socket.fileno(), socket.events if self._takes_input() else self._out_events())]
        watched.append((program.status, select.POLLIN))
        if self._is_started and socket.unsent < HIGH_BYTES:
            watched += [(descriptor, select.POLLIN) for descriptor in program.outputs]
        if self._is_started and self._input and program.input is not None:
            watched.append((program.input, select.POLLOUT))
        ready = _poll(watched, wait_ms)
        socket.flush()
        if socket.fileno() in ready or socket.has_pending:
            self._take_messages(ready.get(socket.fileno(), 0))
        if self._is_started:
            for descriptor in [d for d in program.outputs if d in ready]:
                self._send_output(descriptor)
            self._write_input()
        if program.status in ready:
            self._take_status()

    def _takes_input(self) -> bool:
        return len(self._input) < MAX_INPUT_BYTES

    def _out_events(self) -> int:
        return self._socket.events & ~select.POLLIN

    def _take_messages(self, events: int) -> None:
        if not self._takes_input():
            if events & (select.POLLHUP | select.POLLERR):
                raise Closed("the connection is cut")
            return
        for message in self._socket.receive():
            kind, payload = message[:1], message[1:]
            if kind == STDIN and not self._input_ends:
                self._input += payload
            elif kind == STDIN_END:
                self._input_ends = True
            elif kind == WINDOW and len(payload) == 4:
                rows, columns = payload[:2], payload[2:]
                self._program.resize(int.from_bytes(rows, "big"), int.from_bytes(columns, "big"))

    def _write_input(self) -> None:
        if self._input:
            try:
                del self._input[: self._program.write(bytes(self._input[:4096]))]
            except OSError:
                self._input.clear()
        if self._input_ends and not self._input:
            self._input_ends = False
            self._program.end_input()

    def _send_output(self, descriptor: int) -> bool:
        """Send what a stream has; return whether it had anything."""
        stream = STREAMS[self._program.outputs[descriptor]]
        data = self._program.read(descriptor)
        if data:
            self._socket.send(stream + data)
        return bool(data)

    def _drain(self) -> None:
        """Send what the program printed before its end."""
        ends_s = monotonic() + REST_S
        while self._is_started and monotonic() < ends_s:
            if self._socket.unsent >= HIGH_BYTES:
                _poll([(self._socket.fileno(), select.POLLOUT)], 200)
                self._socket.flush()
            elif not any([self._send_output(one) for one in list(self._program.outputs)]):
                return

    def _take_status(self) -> None:
        data = os.read(self._program.status, 4096)
        if not data:
            # The step is gone, and the program with it.
            self._end = self._end or _end("worker_ended", "the worker has ended")
        self._status += data
        *lines, self._status = self._status.split(b"\n")
        for line in lines:
            self._take_line(line[:1].decode(), int(line[1:] or 0))

    def _take_line(self, letter: str, value: int) -> None:
        if letter == "S":
            self._is_started = True
            self._program.started()
            self._socket.send(STARTED)
        elif letter == "F":
            self._end = _end("program_not_started", os.strerror(value), 127 if value == 2 else 126)
        elif self._end is None:
            code = os.waitstatus_to_exitcode(value)
            name = f"ended by {signal.Signals(-code).name}" if code < 0 else ""
            self._end = _end("ended", name, 128 - code if code < 0 else code)


def _end(reason: str, detail: str, exit_code: int | None = None) -> bytes:
    values = {"reason": reason, "detail": detail[:512], "exit_code": exit_code}
    return END + json.dumps(values).encode()


def _poll(watched: list[tuple[int, int]], wait_ms: int) -> dict[int, int]:
    poll = select.poll()
    masks: dict[int, int] = {}
    for descriptor, events in watched:
        masks[descriptor] = masks.get(descriptor, 0) | events
    for descriptor, events in masks.items():
        poll.register(descriptor, events)
    return dict(poll.poll(wait_ms))
