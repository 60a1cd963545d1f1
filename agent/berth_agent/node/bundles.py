"""Fetches the bundle of a worker from an executor, and unpacks it in the worker's directory."""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import json
import os
import subprocess
import tarfile
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TypeVar

from berth_agent import file_names
from berth_agent.messages import (
    BUNDLE_PATH,
    PART_BYTES,
    PART_PATH,
    BundleManifest,
    BundlePart,
    BundlePartRequest,
    BundleRequest,
)
from berth_agent.node.allocation import AllocationFolder
from berth_agent.node.config import Config
from berth_agent.node.http import Connection, RequestFailed
from berth_agent.node.machine import isolated_command
from berth_agent.node.unpack import FULL, OUTSIDE, TOO_LARGE
from berth_agent.node.users import WorkerUser
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


def can_unpack() -> bool:
    """Whether this Python unpacks archives within a folder: 3.11 does from 3.11.4 on."""
    return hasattr(tarfile, "data_filter")


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
        archive = allocation.path(file_names.BUNDLE)
        try:
            self._fetch(allocation, archive, stopped)
            self._unpack(archive, folder, user, groups, stopped)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise StartRefused("disk_full", f"bundle: {error.strerror}", False) from None
        finally:
            if os.path.exists(archive):
                os.unlink(archive)

    def _fetch(self, allocation: AllocationFolder, path: str, stopped: Callable[[], str]) -> None:
        """Write the archive, each part of which is checked by its name."""
        source = _Source(self._connect, self._closing, stopped, allocation.allocation_id)
        try:
            with open(path, "wb") as file:
                for index, name in enumerate(source.names(allocation.launch.bundle)):
                    file.write(source.part(index, name))
        finally:
            source.close()

    def _unpack(
        self,
        archive: str,
        folder: str,
        user: WorkerUser,
        groups: Sequence[str],
        stopped: Callable[[], str],
    ) -> None:
        request = {
            "folder": folder,
            "uid": user.uid,
            "gid": user.gid,
            "groups": list(user.groups),
            "umask": int(self._config.umask, 8),
            "cgroups": list(groups),
            "most_bytes": round(self._config.bundle_gib * GIB),
        }
        command = isolated_command(
            "from berth_agent.node.unpack import main; sys.exit(main())", json.dumps(request)
        )
        with open(archive, "rb") as source:
            process = subprocess.Popen(
                command,
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        ends_s = monotonic() + UNPACK_S
        try:
            while process.poll() is None:
                _check_stopped(stopped)
                if monotonic() > ends_s:
                    detail = f"bundle: not unpacked within {UNPACK_S:g} s"
                    raise StartRefused("bundle_unreachable", detail, False)
                try:
                    process.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            process.kill()
            _, errors = process.communicate()
        _check_unpacked(process.returncode, errors)


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


def _check_unpacked(code: int, errors: str) -> None:
    """Raise StartRefused unless the archive was unpacked."""
    line = (errors.strip().splitlines() or [f"exit code {code}"])[-1][-SHOWN_CHARS:]
    if code == 0:
        return
    if code == FULL:
        raise StartRefused("disk_full", f"bundle: {line}", False)
    if code in (OUTSIDE, TOO_LARGE):
        raise StartRefused("bundle_unusable", f"bundle: {line}", True)
    raise StartRefused("start_failed", f"bundle: {line}", False)


def _check_stopped(stopped: Callable[[], str]) -> None:
    if reason := stopped():
        raise StartRefused(reason, "its bundle was not placed to the end", False)


def _unreachable(detail: str) -> StartRefused:
    return StartRefused("bundle_unreachable", f"bundle: {detail}", False)
