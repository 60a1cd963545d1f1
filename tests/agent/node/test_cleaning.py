"""The files of ended workers are removed by limits, and not in the agent's own loop."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from berth_agent.linux.disk import GIB
from berth_agent.messages import Order
from berth_agent.node.cleaning import Cleaning
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folders import Folders
from berth_agent.node.files.scratch import Scratch
from berth_agent.node.launch.images import Engine, Images
from tests.agent.node_bench import launch

pytestmark = pytest.mark.process

DAY_S = 86_400.0
MIB = 2**20
PODMAN = """#!/bin/sh
echo "$*" >> {calls}
echo "[{{\\"RepoTags\\": [\\"$4\\"]}}]"
"""


class Bench:
    """Folders of workers that have ended, with private directories."""

    def __init__(self, folder: Path, engine: Engine | None, **settings: float) -> None:
        self.now_s = time.time() + 3600
        self.config = Config(
            state=str(folder / "state"),
            run=str(folder / "run"),
            keep_free_gib=settings.pop("keep_free_gib", 0.0),
            **settings,  # type: ignore[arg-type]
        )
        self.folders = Folders(self.config)
        self.cleaning = Cleaning(
            self.config,
            self.folders,
            Scratch(self.config),
            Images(self.config, engine),
            lambda: self.now_s,
        )
        self.ended = Path(self.config.state) / "ended"
        self.work = Path(self.config.work_folder)

    def begin(self, number: int, name: str = "", image: str = "") -> AllocationFolder:
        document = {
            "kind": "prepare",
            "position": {"seq": number, "index": 0},
            "incarnation": "0" * 32,
        }
        document |= {"allocation_id": f"0/{number}/0/0", "launch": launch("true", image=image)}
        order = Order.from_json(document)
        path = self.folders.path_of(order.allocation_id)
        allocation = AllocationFolder(path, order, "token")
        allocation.write_order()
        work = self.folders.make_work(
            allocation, name or f"j{number}", (os.geteuid(), os.getegid())
        )
        Path(work, "checkpoint").write_bytes(b"x" * MIB)
        return allocation

    def end(self, number: int, days_ago: float = 0.0) -> None:
        allocation = self.begin(number)
        self.folders.retire(allocation)
        at_s = time.time() - days_ago * DAY_S
        os.utime(allocation.folder, (at_s, at_s))

    def left(self) -> tuple[list[str], list[str]]:
        return sorted(os.listdir(self.ended)), sorted(os.listdir(self.work))


def test_the_end_of_a_worker_removes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, None, keep_ended=0)
    bench.end(1)
    assert bench.left() == (["0-1-0-0"], ["j1"])
    bench.cleaning.clean()
    assert bench.left() == ([], [])


@pytest.mark.parametrize(
    "limit", [{"keep_ended": 1}, {"keep_ended_days": 1.5}, {"keep_ended_gib": 1.5 * MIB / GIB}]
)
def test_each_limit_removes_the_oldest(tmp_path: Path, limit: dict[str, float]) -> None:
    bench = Bench(tmp_path, None, **limit)
    bench.end(1, days_ago=2)
    bench.end(2, days_ago=1)
    bench.cleaning.clean()
    assert bench.left() == (["0-2-0-0"], ["j2"])


def test_a_disk_with_little_space_keeps_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, None, keep_free_gib=float(2**30))
    bench.end(1)
    bench.cleaning.clean()
    assert bench.left() == ([], [])


def test_the_last_lines_of_a_worker_can_still_be_read(tmp_path: Path) -> None:
    bench = Bench(tmp_path, None, keep_ended=0)
    bench.end(1)
    bench.now_s = time.time()
    bench.cleaning.clean()
    assert bench.left() == (["0-1-0-0"], ["j1"])


def test_a_directory_that_a_present_worker_has_taken_over_stays(tmp_path: Path) -> None:
    bench = Bench(tmp_path, None, keep_ended=0)
    bench.end(1)
    bench.begin(2, name="j1")
    bench.cleaning.clean()
    assert bench.left() == ([], ["j1"])


def test_a_folder_without_an_order_has_ended_and_keeps_no_secret(tmp_path: Path) -> None:
    bench = Bench(tmp_path, None, keep_ended=0)
    allocation = bench.begin(1)
    Path(allocation.path("order.json")).write_text("{")
    Path(allocation.path("spec.json")).write_text("secret")
    bench.end(2)
    (bench.ended / "0-2-0-0").rename(bench.ended / "0-1-0-0")
    assert bench.folders.read_all() == []
    bench.folders.retire_unordered()
    assert sorted(os.listdir(bench.ended)) == ["0-1-0-0", "0-1-0-0.2"]
    assert sorted(os.listdir(bench.ended / "0-1-0-0.2")) == ["work"]
    bench.cleaning.clean()
    assert bench.left() == ([], [])


@pytest.mark.process
def test_a_disk_with_little_space_keeps_the_images_of_workers_alone(tmp_path: Path) -> None:
    """Those that an operator has pulled are not noted, and stay as well."""
    calls, program = tmp_path / "calls", tmp_path / "podman"
    program.write_text(PODMAN.format(calls=calls))
    program.chmod(0o755)
    engine = Engine(str(program), "overlay", str(tmp_path))
    bench = Bench(tmp_path, engine, keep_free_gib=float(2**30))
    noted = Path(bench.config.state) / "images.json"
    names = {
        "docker.io/library/new:1": 3.0,
        "docker.io/library/old:1": 1.0,
        "r.example/held:1": 2.0,
    }
    noted.write_text(json.dumps(names))
    bench.begin(1, image="r.example/held:1")
    bench.cleaning.clean()
    removed = [call for call in calls.read_text().splitlines() if call.startswith("rmi")]
    assert removed == ["rmi -- docker.io/library/old:1", "rmi -- docker.io/library/new:1"]
    assert json.loads(noted.read_text()) == {"r.example/held:1": 2.0}


@pytest.mark.process
def test_a_disk_with_space_keeps_all_images(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Engine("/bin/false", "overlay", str(tmp_path)))
    noted = Path(bench.config.state) / "images.json"
    noted.write_text('{"docker.io/library/old:1": 1.0}')
    bench.cleaning.clean()
    assert json.loads(noted.read_text())
