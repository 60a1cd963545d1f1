"""The output of workers is read where their job enables it, and goes its way as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth_agent.core.printed_progress import TAIL_BYTES
from berth_agent.core.progress_meter import MeasuredProgress
from berth_agent.messages import Order
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.output.output_progress import EVERY_MS, OutputProgress, read_tail
from berth_agent.step.output import OutputLog
from tests.agent.node_bench import launch

W = "0/5/0/0"
ENABLED = {"BERTH_PROGRESS": "output"}


def allocation(
    folder: Path, phase: str = "running", name: str = W, **fields: Any
) -> AllocationFolder:
    document = {
        "kind": "prepare",
        "position": {"seq": 1},
        "allocation_id": name,
        "incarnation": "0" * 32,
        "launch": launch("true", **{"env": ENABLED, **fields}),
    }
    return AllocationFolder(str(folder), Order.from_json(document), "token", state={"phase": phase})


def printed(done: int) -> bytes:
    return f"\r{done:3d}%|#####     | {done}/100 [00:12<00:20, 31.0it/s]".encode()


class Bench:
    """One worker that prints a bar, an iteration every second."""

    def __init__(self, folder: Path, **fields: Any) -> None:
        self.noted: list[tuple[str, MeasuredProgress]] = []
        self.progress = OutputProgress(lambda name, measured: self.noted.append((name, measured)))
        self.held = [allocation(folder, **fields)]
        self.log = OutputLog(str(folder), 2**20)

    def play(self, seconds: int, reporting: tuple[str, ...] = ()) -> None:
        for second in range(seconds):
            self.log.write(printed(second))
            self.progress.look(self.held, reporting, 1_000_000 + second * 1000)


def test_the_pace_is_that_of_the_node(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.play(12)
    assert bench.noted == [
        (W, MeasuredProgress(5, 100, 1.0, 1_005_000)),
        (W, MeasuredProgress(10, 100, 1.0, 1_010_000)),
    ]
    assert EVERY_MS == 5_000


@pytest.mark.parametrize(
    "fields",
    [
        {"env": {}},
        {"env": {"BERTH_PROGRESS": "yes"}},
        {"rank": 1, "world_size": 2},
        {"phase": "stopping"},
    ],
)
def test_other_workers_are_not_read(tmp_path: Path, fields: dict[str, Any]) -> None:
    bench = Bench(tmp_path, **fields)
    bench.play(12)
    assert bench.noted == []


def test_one_that_reports_by_itself_is_not_read(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.play(12, reporting=(W,))
    assert bench.noted == []


def test_a_bar_that_stands_still_is_no_news(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.play(6)
    for second in range(20, 60):
        bench.progress.look(bench.held, (), 1_000_000 + second * 1000)
    assert len(bench.noted) == 1


def test_the_end_of_the_newest_segment_is_read(tmp_path: Path) -> None:
    assert read_tail(str(tmp_path)) == read_tail(str(tmp_path / "none")) == b""
    log = OutputLog(str(tmp_path), 2**16)
    for number in range(5_000):
        log.write(b"step %d/5000\n" % number)
    log.write(b"\rlast")
    tail = read_tail(str(tmp_path))
    assert tail.endswith(b"step 4999/5000\n\rlast") and len(tail) <= TAIL_BYTES
    (tmp_path / "output.log.not-a-number").write_bytes(b"x")
    assert read_tail(str(tmp_path)) == tail
