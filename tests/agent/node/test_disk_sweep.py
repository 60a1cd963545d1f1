"""Attempts are measured by themselves, and a full disk is laid to the right one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from berth_agent.linux import disk, processes
from berth_agent.node import disk_sweep
from berth_agent.node.disk_sweep import EVERY_S, PATIENCE_S, DiskSweep
from tests.agent.step_bench import until

GIB = disk.GIB
FULL = "the disk is full"
THREAD = "measure-disk"


class Worker:
    """A running worker, as the agent holds it."""

    def __init__(self, folder: Path, name: str, step: int) -> None:
        self.allocation_id = name
        self.folder = str(folder / "allocations" / name)
        Path(self.folder).mkdir(parents=True)
        (Path(self.folder) / "work").write_text(name)
        self.state: dict[str, Any] = {"ends_by_disk": True, "pid": step}
        self.phase = "running"
        self.is_dead = False
        self.launch = SimpleNamespace(job_id=name, grace_s=30.0)
        self.reason = ""

    def stop(self, grace_s: float, reason: str, now_ms: int, detail: str = "") -> None:
        self.phase, self.reason = "stopping", detail


class Node:
    """A sweep over two workers; the files of `huge` are measured only when `measured` is set."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, bound_gib: float) -> None:
        self.huge, self.other = Worker(folder, "huge", 11), Worker(folder, "other", 12)
        self.problem = ""
        self.sizes_gib = {"huge": 0.0, "other": 0.0}
        self.measured, self.removed = threading.Event(), threading.Event()
        reserve = SimpleNamespace(path=str(folder / "reserve"), problem=lambda: self.problem)
        agent = SimpleNamespace(
            lock=threading.RLock(), workers=[self.huge, self.other], reserve=reserve
        )
        config = SimpleNamespace(disk_gib=bound_gib, work_folder=str(folder / "work"))
        self.sweep = DiskSweep(config, agent)  # type: ignore[arg-type]
        self.now_s = 1000.0
        patch.setattr(disk, "sizes_bytes", self._sizes)
        patch.setattr(disk, "remove", lambda _: self.removed.wait())
        patch.setattr(disk_sweep, "monotonic", lambda: self.now_s)
        patch.setattr(processes, "below", lambda steps: list(steps))
        patch.setattr(processes, "written_bytes", lambda pids: 9 * GIB if 11 in pids else GIB)

    def _sizes(self, folders: list[str]) -> dict[str, int]:
        names = {Path(path).name for path in folders}
        if "huge" in names:
            self.measured.wait()
        return {name: round(self.sizes_gib[name] * GIB) for name in names}

    def look(self, after_s: float = EVERY_S) -> None:
        self.now_s += after_s
        self.sweep.look(self.now_s)

    def look_until(self, worker: Worker) -> None:
        """Look until a worker was ended: its measure is a thread."""

        def ended() -> bool:
            self.look()
            return bool(worker.reason)

        until(ended)

    def until_measured(self, name: str) -> None:
        measures = self.sweep._measures
        until(lambda: any(m.ended_s for m in measures.values() if m.allocation_ids == (name,)))


@pytest.fixture
def make_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made: list[Node] = []

    def make(bound_gib: float = 0.0) -> Node:
        made.append(Node(tmp_path, monkeypatch, bound_gib))
        return made[-1]

    yield make
    for node in made:
        node.measured.set()
        node.removed.set()
    until(lambda: not any(thread.name == THREAD for thread in threading.enumerate()))


def test_a_tree_that_takes_long_delays_no_other_jobs_bound(make_node: Any) -> None:
    node = make_node(bound_gib=2.0)
    node.sizes_gib["other"] = 3.0
    node.look_until(node.other)
    assert node.huge.reason == ""


def test_on_a_full_disk_no_job_ends_before_all_are_measured(make_node: Any) -> None:
    node = make_node()
    node.problem, node.sizes_gib = FULL, {"huge": 8.0, "other": 2.0}
    node.look(0.0)
    node.until_measured("other")
    node.look()
    assert node.other.reason == ""
    node.measured.set()
    node.look_until(node.huge)
    assert "its files take 8 GiB" in node.huge.reason and node.other.reason == ""


def test_files_that_are_not_measured_in_time_count_as_what_was_written(make_node: Any) -> None:
    node = make_node()
    node.problem, node.sizes_gib["other"] = FULL, 2.0
    node.look(0.0)
    node.until_measured("other")
    node.look(PATIENCE_S + 1)
    assert "it has written 9 GiB" in node.huge.reason and node.other.reason == ""


def test_no_other_job_ends_while_the_space_of_one_is_freed(make_node: Any) -> None:
    node = make_node()
    node.measured.set()
    node.problem, node.sizes_gib = FULL, {"huge": 8.0, "other": 2.0}
    node.look_until(node.huge)
    node.huge.is_dead, node.huge.phase = True, "dead"
    node.look()
    assert node.other.reason == ""
    node.removed.set()
    node.look_until(node.other)
