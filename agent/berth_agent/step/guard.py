"""The last enforcer of a lease: the init of a worker, which needs no disk for it.

A step writes notes and output to the disk of the state folder, and the agent writes orders there.
Where that disk does not answer, both may wait in a write when the deadline passes. The init reads
the lease, which is in memory, and nothing else.
"""

from __future__ import annotations

import os

from berth_agent.linux import json_text, memory
from berth_agent.linux.clocks import boot_ms
from berth_agent.linux.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from berth_agent.step.spec import Spec

LOOK_S = 1.0
"""The timer stops in suspend: it fires at most so long after the machine has woken."""
AFTER_MS = 2_000
"""From the deadline until the init ends the worker, if its step has not."""
LEASE_BYTES = 65536


class LeaseGuard:
    """Made before the process gets the worker's view, which may hide the lease's folder."""

    def __init__(self, spec: Spec) -> None:
        self._root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._path = spec.lease.lstrip("/")
        self._incarnation = spec.incarnation
        self._deadline_ms: int | None = None
        """Absent: the worker is kept, or the lease could not be read yet."""

    def begin(self, end: Callable[[], None]) -> None:
        """Look each second, and call `end` each time that the deadline has passed."""

        def look(*_: object) -> None:
            is_first = self._deadline_ms is None
            if self.is_over(boot_ms()):
                end()
            if is_first:
                # To read a lease takes more of the interpreter than later looks do.
                memory.release_file_pages()

        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, LOOK_S, LOOK_S)

    def is_over(self, now_ms: int) -> bool:
        """Return whether the worker must end; the file is read where the known deadline is over."""
        if self._deadline_ms is None or now_ms >= self._deadline_ms:
            self._read()
        return self._deadline_ms is not None and now_ms >= self._deadline_ms + AFTER_MS

    def _read(self) -> None:
        """Take the present deadline; a file that cannot be read extends nothing."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._root)
            try:
                lease = json_text.decode(os.read(descriptor, LEASE_BYTES).decode())
            finally:
                os.close(descriptor)
            if lease["incarnation"] == self._incarnation:
                self._deadline_ms = lease["deadline_boot_ms"]
            elif self._deadline_ms is None:
                self._deadline_ms = 0
        except (OSError, ValueError, TypeError, KeyError):
            return
