"""Ends jobs whose files take more of the disk than the node allows, in a thread of its own.

A file system has no bound per folder that holds everywhere, so the files are measured again and
again; a job can exceed its bound by what it writes between two looks.
"""

from __future__ import annotations

import logging
import threading
from functools import partial
from time import monotonic

from berth_agent import file_names
from berth_agent.core.disk_use import REASON, DiskUse, excessive
from berth_agent.linux import disk, files
from berth_agent.linux.clocks import boot_ms
from berth_agent.linux.disk_reserve import write_on_full_disk
from berth_agent.node.agent import Agent
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folders import work_name

EVERY_S = 2.0
LONGEST_SHARE = 0.05
"""Of the time that may be spent on looks: one at millions of files is followed by a longer rest."""
GRACE_S = 5.0
"""Longest grace of such an end: the job can write on in it."""

log = logging.getLogger(__name__)


class DiskSweep:
    """Measures running workers, and frees what those that it ended have written."""

    def __init__(self, config: Config, agent: Agent) -> None:
        self._agent = agent
        self._bound_gib = config.disk_gib
        self._work = config.work_folder
        self._ended: dict[str, str] = {}
        """Private directories of workers that were ended, by allocation."""

    def start(self, stopping: threading.Event) -> None:
        """Look until `stopping` is set."""

        def run() -> None:
            rest_s = EVERY_S
            while not stopping.wait(rest_s):
                began_s = monotonic()
                try:
                    self.look()
                except Exception:
                    log.exception("a look at the disk failed")
                rest_s = max(EVERY_S, (monotonic() - began_s) / LONGEST_SHARE)

        threading.Thread(target=run, daemon=True, name="disk").start()

    def look(self) -> None:
        """Measure once, and end what takes too much. Raises OSError."""
        self._free()
        problem = self._agent.reserve.problem()
        if not self._bound_gib and not problem:
            return
        for use, detail in excessive(self._uses(), self._bound_gib, problem):
            self._end(use, detail)

    def _uses(self) -> list[DiskUse]:
        with self._agent.lock:
            running = [(a.allocation_id, a.folder) for a in self._agent.workers if _is_bound(a)]
        folders: dict[str, set[str]] = {}
        members: dict[str, list[str]] = {}
        for allocation_id, folder in running:
            work = f"{self._work}/{work_name(folder)}"
            noted = files.read_bytes(f"{folder}/{file_names.SCRATCH_NAME}") or b""
            shared = noted.decode(errors="replace")
            # Workers of one attempt have the same folder for /tmp.
            attempt = f"{self._work}/{file_names.SCRATCH}/{shared}" if shared else work
            members.setdefault(attempt, []).append(allocation_id)
            folders.setdefault(attempt, {attempt}).add(work)
        sizes = disk.sizes_bytes(sorted(set().union(*folders.values())))
        return [
            DiskUse(tuple(members[attempt]), sum(sizes.get(path, 0) for path in paths) / disk.GIB)
            for attempt, paths in folders.items()
        ]

    def _end(self, use: DiskUse, detail: str) -> None:
        with self._agent.lock:
            for allocation in self._agent.workers:
                if allocation.allocation_id in use.allocation_ids and _is_bound(allocation):
                    log.warning("%s is ended: %s", allocation.launch.job_id, detail)
                    grace_s = min(allocation.launch.grace_s, GRACE_S)
                    work = f"{self._work}/{work_name(allocation.folder)}"
                    self._ended[allocation.allocation_id] = work
                    stop = partial(allocation.stop, grace_s, REASON, boot_ms(), detail)
                    write_on_full_disk(self._agent.reserve.path, stop)

    def _free(self) -> None:
        """Remove the private directories of workers that were ended and live no more."""
        with self._agent.lock:
            living = {a.allocation_id for a in self._agent.workers if not a.is_dead}
        for allocation_id in self._ended.keys() - living:
            disk.remove(self._ended.pop(allocation_id))


def _is_bound(allocation: AllocationFolder) -> bool:
    """Return whether a worker runs whose step knows this end, as one of this release does."""
    return allocation.phase == "running" and bool(allocation.state.get("ends_by_disk"))
