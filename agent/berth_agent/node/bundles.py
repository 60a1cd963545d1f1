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
    BundleParts,
    BundleRequest,
    Part,
    PartRequest,
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
TRIES = 5
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
        connected = self._connect()
        if connected is None:
            raise _unreachable("no session with an executor")
        session_id, connection = connected
        try:
            names = self._names(allocation, session_id, connection)
            with open(path, "wb") as file:
                for index, name in enumerate(names):
                    _check_stopped(stopped)
                    request = PartRequest(
                        session_id=session_id, allocation_id=allocation.allocation_id, index=index
                    )
                    answer = self._post(connection, PART_PATH, request, Part)
                    file.write(_checked(answer, name))
        finally:
            connection.close()

    def _names(
        self, allocation: AllocationFolder, session_id: str, connection: Connection
    ) -> tuple[str, ...]:
        """Return the names of the parts, checked by the name of the bundle."""
        request = BundleRequest(session_id=session_id, allocation_id=allocation.allocation_id)
        answer = self._post(connection, BUNDLE_PATH, request, BundleParts)
        document = {"parts": list(answer.parts), "size_bytes": answer.size_bytes}
        content = json.dumps(document, separators=(",", ":")).encode()
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != allocation.launch.bundle:
            raise _unreachable("its manifest has another SHA-256")
        return answer.parts

    def _post(self, connection: Connection, path: str, request: Message, answer: type[M]) -> M:
        for left in reversed(range(TRIES)):
            try:
                return connection.post(path, request, answer, REQUEST_S)
            except RequestFailed as failure:
                if failure.status == MISSING:
                    raise StartRefused("bundle_missing", str(failure), True) from None
                if not left or self._closing.wait(max(PAUSE_S, failure.retry_after_s)):
                    raise _unreachable(str(failure)) from None
        raise AssertionError("the last attempt returns or raises")

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


def _checked(answer: Part, name: str) -> bytes:
    """Return the bytes of a part. Raises StartRefused for others than the name says."""
    try:
        body = base64.b64decode(answer.base64, validate=True)
    except binascii.Error:
        body = b""
    if len(body) > PART_BYTES or hashlib.sha256(body).hexdigest() != name:
        raise _unreachable(f"part {name}: its bytes have another SHA-256")
    return body


def _unreachable(detail: str) -> StartRefused:
    return StartRefused("bundle_unreachable", f"bundle: {detail}", False)
