"""Fetches the bundle of a worker from an executor, and unpacks it in the worker's directory."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import select
import subprocess
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TypeVar

from berth_agent.linux import cgroups
from berth_agent.messages import (
    BUNDLE_PATH,
    PART_BYTES,
    PART_PATH,
    BundleManifest,
    BundlePart,
    BundlePartRequest,
    BundleRequest,
)
from berth_agent.node.config import Config
from berth_agent.node.connection.http import Connection, RequestFailed
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.launch.unpack import FULL, UNUSABLE
from berth_agent.node.system.machine import isolated_command
from berth_agent.node.system.users import WorkerUser
from berth_agent.reading import Message
from berth_agent.step.checks import StartRefused

MISSING = 404
AWAY_S = 300.0
"""Longest outage of executors that a launch endures."""
PAUSE_S = 1.0
REQUEST_S = 60.0
UNPACK_S = 1800.0
POLL_S = 0.2
GIB = 2**30
SHOWN_CHARS = 300
M = TypeVar("M", bound=Message)


class Bundles:
    """Used by threads, one for each launch."""

    def __init__(
        self, config: Config, connect: Callable[[], tuple[str, Connection] | None]
    ) -> None:
        """`connect` returns the id of the present session, and a connection to its executor."""
        self._config = config
        self._connect = connect
        self._closing = threading.Event()

    def close(self) -> None:
        """End the waits of launches with the agent; the next agent begins anew."""
        self._closing.set()

    def place(
        self,
        allocation: AllocationFolder,
        folder: str,
        user: WorkerUser,
        groups: Sequence[str],
        stopped: Callable[[], str],
    ) -> None:
        """Fill the directory of the worker with its bundle, as the worker's user.

        `groups` are control groups for that, and `stopped` returns why the worker is not needed any
        more, empty while it is. Raises StartRefused, OSError.
        """
        source = _Source(self._connect, self._closing, stopped, allocation.allocation_id)
        unpacking: _Unpacking | None = None
        try:
            names = source.names(allocation.launch.bundle)
            unpacking = _Unpacking(self._command(folder, user, groups), stopped)
            for index, name in enumerate(names):
                if not unpacking.write(source.part(index, name)):
                    break
            _check_unpacked(*unpacking.end(), cgroups.oom_kills(groups) > 0)
        finally:
            source.close()
            if unpacking is not None:
                unpacking.close()

    def _command(self, folder: str, user: WorkerUser, groups: Sequence[str]) -> list[str]:
        request = {
            "folder": folder,
            "uid": user.uid,
            "gid": user.gid,
            "groups": list(user.groups),
            "umask": int(self._config.umask, 8),
            "cgroups": list(groups),
            "most_bytes": round(self._config.bundle_gib * GIB),
        }
        return isolated_command(
            "from berth_agent.node.launch.unpack import main; sys.exit(main())", json.dumps(request)
        )


class _Unpacking:
    """A process that unpacks the parts of an archive as they come."""

    def __init__(self, command: Sequence[str], stopped: Callable[[], str]) -> None:
        """`stopped` returns why the worker is not needed any more. Raises OSError."""
        self._stopped = stopped
        self._left_s = UNPACK_S
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stderr is not None
        self._input, self._errors = self._process.stdin, self._process.stderr
        os.set_blocking(self._input.fileno(), False)

    def write(self, part: bytes) -> bool:
        """Write a part; return False if the process has ended. Raises StartRefused, OSError."""
        poll = select.poll()
        poll.register(self._input, select.POLLOUT)
        left = memoryview(part)
        while left:
            self._wait(lambda: bool(poll.poll(POLL_S * 1000)))
            try:
                left = left[os.write(self._input.fileno(), left) :]
            except BrokenPipeError:
                return False
        return True

    def end(self) -> tuple[int, str]:
        """Return the exit code, and what the process wrote of errors. Raises StartRefused."""
        self._input.close()
        self._wait(self._has_ended)
        return self._process.returncode, self._errors.read().decode(errors="replace")

    def close(self) -> None:
        """End the process, if it has not."""
        self._process.kill()
        self._process.wait()
        self._input.close()
        self._errors.close()

    def _has_ended(self) -> bool:
        try:
            self._process.wait(POLL_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _wait(self, is_ready: Callable[[], bool]) -> None:
        """Wait for the process, which may take so long in all. Raises StartRefused."""
        begun_s = monotonic()
        while not is_ready():
            _check_stopped(self._stopped)
            if monotonic() - begun_s > self._left_s:
                raise _unreachable(f"not unpacked within {UNPACK_S:g} s")
        self._left_s -= monotonic() - begun_s


class _Source:
    """The executor of the present session, which may be another one after an outage."""

    def __init__(
        self,
        connect: Callable[[], tuple[str, Connection] | None],
        closing: threading.Event,
        stopped: Callable[[], str],
        allocation_id: str,
    ) -> None:
        self._connect = connect
        self._closing = closing
        self._stopped = stopped
        self._allocation_id = allocation_id
        self._connected: tuple[str, Connection] | None = None

    def close(self) -> None:
        if self._connected is not None:
            self._connected[1].close()
        self._connected = None

    def names(self, bundle: str) -> tuple[str, ...]:
        """Return the names of the parts, checked by that of the bundle. Raises StartRefused."""
        answer = self._post(
            BUNDLE_PATH,
            lambda session: BundleRequest(session_id=session, allocation_id=self._allocation_id),
            BundleManifest,
        )
        document = {"parts": list(answer.parts), "size_bytes": answer.size_bytes}
        content = json.dumps(document, separators=(",", ":")).encode()
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != bundle:
            raise _unreachable("its manifest has another SHA-256")
        return answer.parts

    def part(self, index: int, name: str) -> bytes:
        """Return the bytes of a part, checked by its name. Raises StartRefused."""
        answer = self._post(
            PART_PATH,
            lambda session: BundlePartRequest(
                session_id=session, allocation_id=self._allocation_id, index=index
            ),
            BundlePart,
        )
        try:
            body = base64.b64decode(answer.base64, validate=True)
        except binascii.Error:
            body = b""
        if len(body) > PART_BYTES or hashlib.sha256(body).hexdigest() != name:
            raise _unreachable(f"part {name}: its bytes have another SHA-256")
        return body

    def _post(self, path: str, request: Callable[[str], Message], answer: type[M]) -> M:
        """Post a request until it is answered; outages of executors are endured for a while."""
        ends_s = monotonic() + AWAY_S
        while True:
            _check_stopped(self._stopped)
            self._connected = self._connected or self._connect()
            problem, pause_s = "no session with an executor", PAUSE_S
            if self._connected is not None:
                session, connection = self._connected
                try:
                    return connection.post(path, request(session), answer, REQUEST_S)
                except RequestFailed as failure:
                    if failure.status == MISSING:
                        raise StartRefused("bundle_missing", str(failure), True) from None
                    problem, pause_s = str(failure), max(PAUSE_S, failure.retry_after_s)
                    self.close()
            if self._closing.wait(pause_s) or monotonic() > ends_s:
                raise _unreachable(problem)


def _check_unpacked(code: int, errors: str, is_too_large: bool) -> None:
    """Raise StartRefused unless the archive was unpacked.

    `is_too_large`: the kernel killed the process for the memory of its groups.
    """
    line = (errors.strip().splitlines() or [f"exit code {code}"])[-1][-SHOWN_CHARS:]
    if code == 0:
        return
    if code == FULL:
        raise StartRefused("disk_full", f"bundle: {line}", False)
    if is_too_large:
        line = "unpacking it takes more memory than the job has"
    if code == UNUSABLE or is_too_large:
        raise StartRefused("bundle_unusable", f"bundle: {line}", True)
    raise StartRefused("start_failed", f"bundle: {line}", False)


def _check_stopped(stopped: Callable[[], str]) -> None:
    if reason := stopped():
        raise StartRefused(reason, "its bundle was not placed to the end", False)


def _unreachable(detail: str) -> StartRefused:
    return StartRefused("bundle_unreachable", f"bundle: {detail}", False)
