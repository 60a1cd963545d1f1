"""Ends jobs whose files take more of the disk than the node allows, in threads of its own.

A file system has no bound per folder that holds everywhere, so the files are measured again and
again; a job can exceed its bound by what it writes between two looks. Each attempt of a job is
measured by itself: one with millions of files delays no look at another.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from berth_agent import file_names
from berth_agent.core.disk_use import REASON, DiskUse, excessive
from berth_agent.linux import disk, files, held_files, processes
from berth_agent.linux.clocks import boot_ms
from berth_agent.linux.disk_reserve import write_on_full_disk
from berth_agent.node.agent import Agent
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folders import work_name

EVERY_S = 2.0
LONGEST_SHARE = 0.05
"""Of the time that one attempt may be measured: of millions of files it rests longer."""
PATIENCE_S = 10.0
"""Longest time for which a full disk waits for the measure of an attempt before it counts as what
it has written, and for the space of what was ended."""
GRACE_S = 5.0
"""Longest grace of such an end: the job can write on in it."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Measure:
    """The files of one attempt, as they were measured last, in a thread of its own."""

    folders: frozenset[str] = frozenset()
    allocation_ids: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    size_bytes: int = 0
    held_bytes: int = 0
    began_s: float = 0.0
    ended_s: float = 0.0
    """Beginning and end of the last measure that has ended."""
    since_s: float | None = None
    """Beginning of the present one."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, now_s: float, *, at_once: bool) -> None:
        """Begin a measure where one is due and none is under way."""
        rest_s = max(EVERY_S, (self.ended_s - self.began_s) / LONGEST_SHARE)
        is_due = at_once or not self.ended_s or now_s >= self.ended_s + rest_s
        with self._lock:
            if self.since_s is not None or not is_due:
                return
            self.since_s = now_s
        threading.Thread(target=self._run, args=(now_s,), daemon=True, name="measure-disk").start()

    def _run(self, began_s: float) -> None:
        try:
            held, size = self._held_bytes(), sum(disk.sizes_bytes(sorted(self.folders)).values())
        except OSError:
            log.exception("the files of a job could not be measured")
            held, size = self.held_bytes, self.size_bytes - self.held_bytes
        with self._lock:
            self.size_bytes, self.held_bytes = size + held, held
            self.began_s, self.ended_s, self.since_s = began_s, monotonic(), None

    def _held_bytes(self) -> int:
        pids = processes.below(self.steps)
        devices = {os.stat(path).st_dev for path in self.folders if os.path.exists(path)}
        own = held_files.root_device(os.getpid())
        roots = {held_files.root_device(pid) for pid in pids}
        return held_files.held_bytes(pids, devices | {root for root in roots if root} - {own})

    def use(self, full_s: float) -> DiskUse:
        """Return what its files take; if not measured since the disk is full, what it wrote too."""
        with self._lock:
            size, held, began_s = self.size_bytes, self.held_bytes, self.began_s
        written_gib = None
        if began_s < full_s:
            written_gib = processes.written_bytes(processes.below(self.steps)) / disk.GIB
        return DiskUse(self.allocation_ids, size / disk.GIB, held / disk.GIB, written_gib)


class DiskSweep:
    """Measures running workers, and frees what those that it ended have written."""

    def __init__(self, config: Config, agent: Agent) -> None:
        self._agent = agent
        self._bound_gib = config.disk_gib
        self._work = config.work_folder
        self._measures: dict[str, Measure] = {}
        """By the folder of the attempt."""
        self._full_s = 0.0
        """When the disk was seen to be full; 0: it is not."""
        self._freed_by_s = 0.0
        """Until when a full disk waits for the space of what was ended."""
        self._ended: dict[str, str] = {}
        """Private directories of workers that were ended, by allocation."""
        self._removing: dict[str, threading.Thread] = {}

    def start(self, stopping: threading.Event) -> None:
        """Look until `stopping` is set."""

        def run() -> None:
            while not stopping.wait(EVERY_S):
                try:
                    self.look(monotonic())
                except Exception:
                    log.exception("a look at the disk failed")

        threading.Thread(target=run, daemon=True, name="disk").start()

    def look(self, now_s: float) -> None:
        """Have measured what is due, and end what takes too much. Raises OSError."""
        self._free()
        problem = self._agent.reserve.problem()
        self._full_s = (self._full_s or now_s) if problem else 0.0
        if not self._bound_gib and not problem:
            self._measures.clear()
            return
        self._find_attempts()
        measures = self._measures.values()
        for measure in measures:
            measure.start(now_s, at_once=measure.began_s < self._full_s)
        if not self._may_judge(now_s):
            problem = ""
        uses = [measure.use(self._full_s if problem else 0.0) for measure in measures]
        for use, detail in excessive(uses, self._bound_gib, problem):
            self._end(use, detail)
            self._freed_by_s = now_s + GRACE_S + PATIENCE_S

    def _may_judge(self, now_s: float) -> bool:
        """Return whether a full disk is the doing of what is measured, as far as can be known.

        An innocent job would end for one whose files take long to measure, or to remove.
        """
        if (self._ended or self._removing) and now_s < self._freed_by_s:
            return False
        known = all(measure.began_s >= self._full_s for measure in self._measures.values())
        return known or now_s > self._full_s + PATIENCE_S

    def _find_attempts(self) -> None:
        """Have a measure for each attempt that runs, and for no other."""
        with self._agent.lock:
            running = [
                (a.allocation_id, a.folder, int(a.state.get("pid", 0)))
                for a in self._agent.workers
                if _is_bound(a)
            ]
        members: dict[str, list[tuple[str, str, int]]] = {}
        for allocation_id, folder, step in running:
            if not (name := work_name(folder)):
                continue
            work = f"{self._work}/{name}"
            noted = files.read_bytes(f"{folder}/{file_names.SCRATCH_NAME}") or b""
            shared = noted.decode(errors="replace")
            # Workers of one attempt have the same folder for /tmp.
            attempt = f"{self._work}/{file_names.SCRATCH}/{shared}" if shared else work
            members.setdefault(attempt, []).append((allocation_id, work, step))
        for gone in self._measures.keys() - members.keys():
            del self._measures[gone]
        for attempt, workers in members.items():
            measure = self._measures.setdefault(attempt, Measure())
            measure.allocation_ids = tuple(allocation_id for allocation_id, _, _ in workers)
            measure.folders = frozenset((attempt, *(work for _, work, _ in workers)))
            measure.steps = tuple(step for _, _, step in workers)

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
            work = self._ended.pop(allocation_id)
            remover = threading.Thread(target=disk.remove, args=(work,), daemon=True)
            self._removing[allocation_id] = remover
            remover.start()
        living_removers = (item for item in self._removing.items() if item[1].is_alive())
        self._removing = dict(living_removers)


def _is_bound(allocation: AllocationFolder) -> bool:
    """Return whether a worker runs whose step knows this end, as one of this release does."""
    return allocation.phase == "running" and bool(allocation.state.get("ends_by_disk"))
