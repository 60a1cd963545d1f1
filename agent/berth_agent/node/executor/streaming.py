"""Output and telemetry on their way to the executor: bounded, and lost rather than waited for."""

from __future__ import annotations

import json
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from berth_agent import file_names
from berth_agent.linux import files
from berth_agent.linux.clocks import boot_ms
from berth_agent.messages import (
    MAX_LINES,
    STREAM_PATH,
    Iterations,
    Measurements,
    PrintedLines,
    Stream,
)
from berth_agent.node.agent import Agent
from berth_agent.node.config import Config
from berth_agent.node.connection.http import Connection, RequestFailed
from berth_agent.node.executor.session import OpenSession, SessionLoop, guarded
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.output import newest_reports
from berth_agent.node.output.follower import OutputFollower
from berth_agent.node.output.output_progress import OutputProgress
from berth_agent.node.output.tool_files import ToolFiles
from berth_agent.node.output.unsent_iterations import UnsentIterations
from berth_agent.step import spec as spec_of_step
from berth_agent.telemetry_receiver import TelemetryReceiver

EVERY_S = 0.5
MAX_WORKERS = 256
"""Workers of one message."""
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
OUTPUT_BYTES = 256 * 1024
"""Encoded parts of one message, and one part more: below what an executor takes, with those of
`unsent_iterations.py`."""
REFUSED = (400, 413)
"""Statuses of a message that is refused whenever it is sent."""
RETRY_S = 5.0
OPEN_PHASES = ("prepared", "starting", "running", "stopping")

log = logging.getLogger(__name__)


class Streaming:
    """One thread; its positions are kept in the run folder, so that a restart repeats little.

    A message is bounded in bytes, and the workers take turns: those that were served longest ago
    are the first of `_followers` and of `_unsent`.
    """

    def __init__(
        self,
        config: Config,
        agent: Agent,
        sessions: SessionLoop,
        take_measured: Callable[[], Measurements | None] = lambda: None,
    ) -> None:
        self._config = config
        self._agent = agent
        self._sessions = sessions
        self._take_measured = take_measured
        self._followers: dict[str, OutputFollower] = {}
        self._dropped: set[str] = set()
        """Followed workers whose end the ledger has already."""
        self._receivers: dict[str, TelemetryReceiver] = {}
        self._unsent = UnsentIterations()
        self._checkpoints, self._progress = newest_reports.checkpoints(), newest_reports.progress()
        self._output_progress = OutputProgress(self._progress.note)
        self._tool_files = ToolFiles(config.work_folder, self._unsent.add)
        self._most_parts = MAX_WORKERS
        self._path = f"{config.run}/{file_names.STREAMED}"
        self._positions = self._read_positions()

    def start(self) -> None:
        self._remove_sockets()
        threading.Thread(target=guarded(self._run), daemon=True, name="stream").start()

    def _run(self) -> None:
        while (session := self._sessions.wait_for_session()) is not None:
            connection = self._sessions.connect(session.url)
            try:
                while self._sessions.session is session:
                    self._wait_for_telemetry()
                    self._send(session, connection)
            except RequestFailed as failure:
                log.info("stream: %s", failure)
                self._sessions.stopping.wait(max(RETRY_S, failure.retry_after_s))
            finally:
                connection.close()

    def _send(self, session: OpenSession, connection: Connection) -> None:
        """Send what there is; nothing counts as sent before the answer."""
        self._sync()
        iterations = self._unsent.due(self._most_parts)
        read = list(self._read_output(self._most_parts - len(iterations)))
        newest = {
            "checkpoints": self._checkpoints.due(MAX_WORKERS, self._began_ms),
            "progress": self._progress.due(MAX_WORKERS, self._began_ms),
            "measured": self._take_measured(),
        }
        if not (read or iterations or any(newest.values())):
            return
        printed = tuple(lines for _, lines in read)
        try:
            self._post(session, connection, printed=printed, iterations=iterations, **newest)
        except RequestFailed as failure:
            if failure.status not in REFUSED:
                raise
            self._send_apart(session, connection, newest)
            if len(printed) + len(iterations) > 1:
                self._most_parts = (len(printed) + len(iterations)) // 2
                return
            log.warning("stream: left out: %s", failure)
            self._note_sent(read, iterations)
            notes = tuple(_left_out(lines, failure) for lines in printed)
            self._post(session, connection, printed=notes)
        else:
            self._most_parts = min(MAX_WORKERS, 2 * self._most_parts)
            self._note_newest_sent(newest)
            self._note_sent(read, iterations)

    def _send_apart(
        self, session: OpenSession, connection: Connection, newest: Mapping[str, Any]
    ) -> None:
        """Send each kind in a message of its own: the one that was refused had parts of others."""
        for kind, value in newest.items():
            try:
                if value:
                    self._post(session, connection, **{kind: value})
            except RequestFailed as failure:
                if failure.status not in REFUSED:
                    raise
                log.warning("stream: %s left out: %s", kind, failure)
        self._note_newest_sent(newest)

    def _post(self, session: OpenSession, connection: Connection, **parts: Any) -> None:
        message = Stream(session_id=session.session_id, **parts)
        connection.exchange(STREAM_PATH, message.to_json(), self._sessions.request_s())

    def _note_newest_sent(self, newest: Mapping[str, Any]) -> None:
        self._checkpoints.note_sent(newest["checkpoints"])
        self._progress.note_sent(newest["progress"])

    def _note_sent(
        self, read: list[tuple[OutputFollower, PrintedLines]], iterations: tuple[Iterations, ...]
    ) -> None:
        self._unsent.note_sent(iterations)
        for follower, lines in read:
            follower.sent()
            self._followers[lines.allocation_id] = self._followers.pop(lines.allocation_id)
        self._write_positions()

    def _wait_for_telemetry(self) -> None:
        """Empty the sockets until the next message is due: the kernel keeps few datagrams."""
        poll = select.poll()
        receivers = {
            receiver.fileno(): (name, receiver) for name, receiver in self._receivers.items()
        }
        for descriptor in receivers:
            poll.register(descriptor, select.POLLIN)
        if not receivers:
            self._sessions.stopping.wait(EVERY_S)
            return
        until_s = time.monotonic() + EVERY_S
        while (left_s := until_s - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left_s * 1000):
                self._keep(*receivers[descriptor])

    def _keep(self, name: str, receiver: TelemetryReceiver) -> None:
        """Keep what a worker reported, the newest of each kind, until it is sent."""
        fresh, written = receiver.take_iterations(), receiver.take_checkpoint()
        if written is not None:
            self._checkpoints.note(name, written)
        if not fresh:
            return
        if (measured := receiver.progress()) is not None:
            self._progress.note(name, measured)
        self._unsent.add(name, receiver.rank, fresh)

    def _began_ms(self, name: str) -> int:
        """Return when the worker's program began, in ms since the boot; 0: not yet.

        A step of an older agent notes its init alone, which it forked at the order to start.
        """
        with self._agent.lock:
            known = (a.state for a in self._agent.workers if a.allocation_id == name)
            state = next(known, {})
        if "began_ms" in state:
            return int(state["began_ms"])
        return round(int(state.get("init_ticks", 0)) * TICK_MS)

    def _read_output(self, most_workers: int) -> Iterator[tuple[OutputFollower, PrintedLines]]:
        most = min(MAX_LINES, max(1, round(self._config.lines_per_s * EVERY_S)))
        with self._agent.lock:
            dead = {a.allocation_id for a in self._agent.workers if a.is_dead}
        read = size_bytes = 0
        for allocation_id, follower in list(self._followers.items()):
            if read >= most_workers or size_bytes > OUTPUT_BYTES:
                return
            is_dropped = allocation_id in self._dropped
            printed = follower.read(most, ended=is_dropped or allocation_id in dead)
            if printed is not None:
                yield follower, printed
                read += 1
                size_bytes += len(json.dumps(printed.to_json()))
            elif is_dropped:
                del self._followers[allocation_id]
                self._dropped.discard(allocation_id)

    def _sync(self) -> None:
        """Follow the workers that are held now, and dropped ones to the end of their output."""
        with self._agent.lock:
            dropped = self._agent.workers.take_dropped()
            held = {a.allocation_id: a for a in self._agent.workers}
        for allocation in dropped:
            self._follow(allocation)
            self._dropped.add(allocation.allocation_id)
        for allocation_id in self._receivers.keys() - held.keys():
            self._receivers.pop(allocation_id).close()
        self._checkpoints.keep_only(held)
        self._progress.keep_only(held)
        self._unsent.keep_only(held)
        for allocation_id, allocation in held.items():
            self._follow(allocation)
            if allocation_id not in self._receivers and allocation.phase in OPEN_PHASES:
                self._open_receiver(allocation)
        reporting = {name for name, one in self._receivers.items() if one.progress() is not None}
        self._output_progress.look(held.values(), reporting, boot_ms())
        self._tool_files.look(held.values(), boot_ms())

    def _follow(self, allocation: AllocationFolder) -> None:
        """Read the output where it lies now, from where it was read to."""
        if (known := self._followers.get(allocation.allocation_id)) is not None:
            known.folder = allocation.folder
            return
        follower = OutputFollower(allocation.allocation_id, allocation.folder)
        line, segment, offset = self._positions.get(allocation.allocation_id, (0, 0, 0))
        follower.resume((line, segment, offset))
        self._followers[allocation.allocation_id] = follower

    def _open_receiver(self, allocation: AllocationFolder) -> None:
        """Let the worker's user send; it is known once the step was specified."""
        path = telemetry_path(self._config, allocation)
        try:
            spec = spec_of_step.read(allocation.folder)
            uid, gid = (-1, -1) if spec.owner is None else (spec.owner, spec.gid)
            receiver = TelemetryReceiver(path, allocation.token, allocation.allocation_id, uid, gid)
        except (OSError, ValueError, KeyError) as error:
            log.warning("telemetry of %s: %s", allocation.allocation_id, error)
            return
        self._receivers[allocation.allocation_id] = receiver

    def _remove_sockets(self) -> None:
        """Remove those of an earlier agent: workers that live get theirs again, others never."""
        with suppress(OSError), os.scandir(telemetry_folder(self._config)) as entries:
            for entry in entries:
                os.unlink(entry.path)

    def _read_positions(self) -> dict[str, tuple[int, int, int]]:
        try:
            document = files.read_json(self._path) or {}
            return {name: (int(a), int(b), int(c)) for name, (a, b, c) in document.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write_positions(self) -> None:
        positions = {name: f.position for name, f in self._followers.items()}
        try:
            files.write_atomic(self._path, json.dumps(positions).encode())
        except OSError:
            return


def _left_out(printed: PrintedLines, failure: RequestFailed) -> PrintedLines:
    """Return a line that stands for those which the executor does not take."""
    line = f"berth: lines left out here: {len(printed.lines)}; they were refused: {failure.reason}"
    return replace(printed, lines=(line,))


def telemetry_path(config: Config, allocation: AllocationFolder) -> str:
    """Return the socket of a worker, which its user alone may open."""
    return f"{telemetry_folder(config)}/{os.path.basename(allocation.folder)}"


def telemetry_folder(config: Config) -> str:
    """Return the folder of the sockets, made when the agent starts."""
    return f"{config.run}/{file_names.TELEMETRY}"
