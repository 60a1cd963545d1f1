"""Files by which the agent directs a step: the start, the stop and the node's lease."""

from __future__ import annotations

import os

from berth_agent import file_names
from berth_agent.linux import files
from berth_agent.linux.clocks import boot_ms, wall_ms
from berth_agent.step.ending import LeaseWatch
from berth_agent.step.injection import read_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from berth_agent.step.injection import InjectedFault
    from berth_agent.step.spec import Spec


class FolderWatch:
    """Reads the files again when they were replaced."""

    def __init__(self, folder: str, spec: Spec) -> None:
        self.lease = LeaseWatch(spec.incarnation)
        self.tombstone: dict[str, Any] | None = None
        """The order to stop: `grace_s`. It is final."""
        self.injected: InjectedFault | None = None
        """The fault of a drill, until another one is noted."""
        self.folder = folder
        self._injection_path = f"{os.path.dirname(spec.lease)}/{file_names.INJECTION}"
        self._lease_path = spec.lease
        self._tombstone_path = f"{folder}/{file_names.TOMBSTONE}"
        self._read_lease = False
        self._versions: dict[str, tuple[int, int]] = {}
        self.look()

    def look(self) -> None:
        """Look at the clocks, the lease and the tombstone."""
        now_ms = boot_ms()
        self.lease.observe(now_ms, wall_ms())
        lease = self._changed(self._lease_path)
        if lease is not None:
            self._take_lease(lease, now_ms)
        injection = self._changed(self._injection_path)
        if injection is not None:
            self.injected = read_fault(injection)
        tombstone = self._changed(self._tombstone_path)
        if tombstone is not None:
            self.tombstone = tombstone

    def has_go(self) -> bool:
        return os.path.exists(f"{self.folder}/{file_names.GO}")

    def variables(self) -> dict[str, str]:
        """Return the variables that came with the order to start. Raises OSError, ValueError."""
        variables: dict[str, str] = files.read_json(f"{self.folder}/{file_names.GO}")["env"]
        return variables

    def _take_lease(self, lease: dict[str, Any], now_ms: int) -> None:
        incarnation, deadline_ms = str(lease["incarnation"]), lease["deadline_boot_ms"]
        if self._read_lease:
            self.lease.renew(incarnation, deadline_ms, int(lease["sent_boot_ms"]), now_ms)
        else:
            self.lease.begin(incarnation, deadline_ms)
        self._read_lease = True
        length_s = lease.get("stop_after_s")
        self.lease.length_ms = None if length_s is None else round(float(length_s) * 1000)
        self._note_terms(str(lease["terms_id"]))

    def _note_terms(self, terms_id: str) -> None:
        """Say that deadlines of these terms hold from now on."""
        path = f"{self.folder}/{file_names.TERMS}"
        if files.read_bytes(path) != terms_id.encode():
            try:
                files.write_atomic(path, terms_id.encode())
            except OSError:
                return

    def _changed(self, path: str) -> dict[str, Any] | None:
        """Return the document if it was replaced since the last look."""
        if not os.access(path, os.F_OK):
            # Mostly so; an error for it would take more of the interpreter than all the rest.
            return None
        try:
            status = os.stat(path)
            version = (status.st_ino, status.st_mtime_ns)
            if self._versions.get(path) == version:
                return None
            document = files.read_json(path)
        except (OSError, ValueError):
            return None
        self._versions[path] = version
        return document if isinstance(document, dict) else None
