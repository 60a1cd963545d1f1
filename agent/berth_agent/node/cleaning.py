"""Removes the files of ended workers in a thread of its own, and never under the agent's lock.

A directory of millions of files takes minutes, in which heartbeats go on. The thread has the usual
priority: one that waits for a CPU while it holds the interpreter would stop the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from berth_agent.core.retention import EndedWorker, Retention
from berth_agent.linux import disk
from berth_agent.node.config import Config
from berth_agent.node.files.folders import Folders, work_name
from berth_agent.node.files.scratch import Scratch
from berth_agent.node.launch.images import Images

EVERY_S = 30.0

log = logging.getLogger(__name__)


class Cleaning:
    """Keeps what the limits allow."""

    def __init__(
        self,
        config: Config,
        folders: Folders,
        scratch: Scratch,
        images: Images,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._folders = folders
        self._scratch = scratch
        self._images = images
        self._keep_free_gib = config.keep_free_gib
        self._work = config.work_folder
        self._now_s = now_s
        self._retention = Retention(
            config.keep_ended, config.keep_ended_gib, config.keep_ended_days, config.keep_free_gib
        )
        self._measured: dict[tuple[str, int], EndedWorker] = {}
        """By name and time of the end: what has ended does not grow."""

    def start(self, stopping: threading.Event) -> None:
        """Clean until `stopping` is set."""

        def run() -> None:
            while not stopping.wait(EVERY_S):
                try:
                    self.clean()
                except Exception:
                    log.exception("cleaning failed")

        threading.Thread(target=run, daemon=True, name="clean").start()

    def clean(self) -> None:
        """Remove what is not kept any more. Raises OSError."""
        self._scratch.clean()
        self._clean_images()
        self._measure_ended()
        ended, free_gib = self._measured.values(), disk.free_gib(self._work)
        held = self._folders.held_work()
        for worker in self._retention.expired(ended, free_gib, self._now_s()):
            # The folder, which names the directory, goes last: after a kill it is found again.
            name = work_name(worker.folder)
            if name and name not in held:
                disk.remove(f"{self._work}/{name}")
            disk.remove(worker.folder)

    def _clean_images(self) -> None:
        """Remove images that no worker names while their disk has little space."""
        store = self._images.store
        while store and disk.free_gib(store) < self._keep_free_gib:
            if not self._images.remove_oldest(self._folders.held_images):
                return

    def _measure_ended(self) -> None:
        """Measure what has ended since, and forget what was removed."""
        measured = {}
        for path in self._folders.ended():
            key = (path.name, path.lstat().st_mtime_ns)
            measured[key] = self._measured.get(key) or self._measure(path, key[1])
        self._measured = measured

    def _measure(self, path: Path, ended_ns: int) -> EndedWorker:
        name, folders = work_name(str(path)), [str(path)]
        if name:
            folders.append(f"{self._work}/{name}")
        size_bytes = sum(disk.sizes_bytes(folders).values())
        return EndedWorker(str(path), ended_ns / 1e9, size_bytes / disk.GIB)
