"""Folders that the workers of a job share among them."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from berth_agent.messages import Order
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folders import Folders
from berth_agent.node.files.scratch import Scratch, hidden_folders
from tests.agent.node_bench import launch

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders to other users")
pytestmark = pytest.mark.process

OWN = (os.geteuid(), os.getegid())


class Bench:
    """Allocations of one node, and the folders of their jobs."""

    def __init__(self, tmp: Path) -> None:
        self.config = Config(state=str(tmp / "state"), run=str(tmp / "run"))
        self.folders = Folders(self.config)
        self.scratch = Scratch(self.config)

    def begin(self, rank: int) -> AllocationFolder:
        document = {
            "kind": "prepare",
            "position": {"seq": 1, "index": 0},
            "incarnation": "0" * 32,
            "allocation_id": f"0/1/0/{rank}",
            "launch": launch("true", rank=rank),
        }
        order = Order.from_json(document)
        path = self.folders.path_of(order.allocation_id)
        allocation = AllocationFolder(path, order, "token")
        allocation.write_order()
        return allocation

    def make(self, rank: int, name: str = "j1.1", owner: tuple[int, int] = OWN) -> dict[str, Path]:
        mounts = self.scratch.make(self.begin(rank), name, owner)
        return {target: Path(source) for source, target in mounts}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_workers_of_a_job_share_folders_that_go_with_the_last_of_them(bench: Bench) -> None:
    first, second = bench.make(0), bench.make(1)
    assert first == second and sorted(first) == ["/dev/shm", "/tmp", "/var/tmp"]
    for number, path in enumerate(first.values()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        (path / f"file{number}").touch()
    bench.folders.retire(bench.begin(0))
    bench.scratch.clean()
    assert (first["/dev/shm"] / "file2").exists()
    bench.folders.retire(bench.begin(1))
    bench.scratch.clean()
    assert not any(path.exists() for path in first.values())


def test_folders_of_the_agent_are_hidden_from_its_own_user_where_nothing_else_hides_them() -> None:
    usual = Config(state="/var/lib/a", run="/run/a")
    assert hidden_folders(usual) == ["/run/a", "/var/lib/a"]
    assert hidden_folders(replace(usual, work="/scratch/a", run="/tmp/a")) == [
        "/scratch/a",
        "/var/lib/a",
    ]
    assert hidden_folders(replace(usual, run="/var/lib/a/run")) == ["/var/lib/a"]


def test_another_job_has_other_folders(bench: Bench) -> None:
    first, second = bench.make(0), bench.make(1, "j2.1")
    assert not set(first.values()) & set(second.values())
    bench.folders.retire(bench.begin(0))
    bench.scratch.clean()
    assert [path.exists() for path in (first["/tmp"], second["/tmp"])] == [False, True]
    bench.folders.retire(bench.begin(1))
    bench.scratch.clean()


@as_root
def test_a_folder_in_memory_that_somebody_else_has_made_is_not_used(bench: Bench) -> None:
    """After a reboot its name is known, and anybody may make it."""
    first = bench.make(0)["/dev/shm"]
    os.chown(first, 12_345, 12_345)
    second = bench.make(1)["/dev/shm"]
    first.rmdir()
    assert second != first and second.stat().st_uid == os.geteuid()
    for rank in (0, 1):
        bench.folders.retire(bench.begin(rank))
    bench.scratch.clean()
    assert not second.exists()


@as_root
def test_the_folders_belong_to_the_user_of_the_worker_behind_a_closed_one(bench: Bench) -> None:
    made = bench.make(0, owner=(70_001, 70_001))
    assert {path.stat().st_uid for path in made.values()} == {70_001}
    above = made["/tmp"].parents[1].stat()
    assert (above.st_uid, stat.S_IMODE(above.st_mode)) == (0, 0o700)
    bench.folders.retire(bench.begin(0))
    bench.scratch.clean()
