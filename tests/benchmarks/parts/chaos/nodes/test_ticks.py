"""Overlapping ticks of two workers are found, by GPU and by job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.parts.chaos.nodes.ticks import (
    WORKER,
    GpuUse,
    find_double_attempts,
    find_double_uses,
    find_ticks_after,
    read_ticks,
    read_uses,
)


def use(
    first_ms: int, last_ms: int, *, node: str = "n1", gpu: int = 0, job: str = "a", attempt: int = 1
) -> GpuUse:
    return GpuUse(node, gpu, job, attempt, 0, first_ms, last_ms)


def test_uses_one_after_the_other_are_no_finding() -> None:
    uses = [use(10, 20), use(21, 30, job="b"), use(15, 25, gpu=1, job="c"), use(31, 40, attempt=2)]
    assert find_double_uses(uses) == find_double_attempts(uses) == []


def test_two_workers_on_one_gpu_are_found() -> None:
    uses = [use(10, 100), use(20, 30, job="b"), use(50, 60, job="c")]
    assert len(find_double_uses(uses)) == 2
    assert find_double_attempts(uses) == []


def test_two_attempts_are_found_on_any_node() -> None:
    uses = [use(10, 20), use(20, 30, attempt=2, node="n2")]
    assert find_double_uses(uses) == []
    [finding] = find_double_attempts(uses)
    assert "attempt 1" in finding and "on n2" in finding


def test_workers_of_one_attempt_may_tick_together() -> None:
    assert find_double_attempts([use(10, 20), use(10, 20, node="n2")]) == []


def test_a_tick_after_the_release_of_its_gpus_is_found() -> None:
    uses = [GpuUse("n1", gpu, "a", 1, gpu, 10, 20, last_wall_ms=520) for gpu in (0, 1)]
    assert find_ticks_after(uses, {("a", 1, 0): 520, ("a", 2, 1): 510}) == []
    [finding] = find_ticks_after(uses, {("a", 1, 0): 600, ("a", 1, 1): 517})
    assert "rank 1" in finding and "released 3 ms before its last tick" in finding


@pytest.mark.process
def test_a_worker_ticks_on_each_of_its_gpus_until_its_end(tmp_path: Path) -> None:
    env = {
        "BERTH_JOB_ID": "j",
        "BERTH_ATTEMPT": "2",
        "BERTH_RANK": "1",
        "BERTH_NODE_ID": "n1",
        "CUDA_VISIBLE_DEVICES": "0,3",
    }
    command = [sys.executable, "-ISc", WORKER, str(tmp_path), "0.15"]
    began_ms = time.time_ns() // 1_000_000
    done = subprocess.run(command, env=os.environ | env, capture_output=True, check=True)
    assert done.stdout == b"complete\n"
    first, second = sorted(read_uses(tmp_path), key=lambda use: use.gpu)
    assert (first.place, second.place) == (("n1", 0), ("n1", 3))
    assert first.run == ("j", 2) and first.rank == 1
    assert first.last_ms - first.first_ms >= 100
    words = [tick.word for tick in read_ticks(tmp_path) if tick.gpu == 3]
    assert words == ["start", *["tick"] * (len(words) - 2), "end"]
    assert first.last_wall_ms >= began_ms
