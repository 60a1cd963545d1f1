"""Work is counted as virtual nodes count it, of jobs with several pools alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.placement.core.lane import job, lane


@pytest.mark.parametrize(
    ("pools", "speed", "done_s"), [(("p", "q"), 1.0, 20.0), (("p", "q"), 2.0, 40.0), (None, 1.0, 0)]
)
def test_a_stop_keeps_whole_intervals_at_the_speed_of_its_gpus(
    pools: tuple[str, ...] | None, speed: float, done_s: float
) -> None:
    pool = lane("n")
    gpu_type = pool.state.board.nodes["n"].kind.gpu_type
    spec: dict[str, Any] = {"checkpoint_interval_s": 10.0, "gpu_speeds": {gpu_type: speed}}
    pool.run(job("a", 8, pools=pools, **spec))
    pool.submit(job("urgent", 8, priority_class="high"), after_ms=25_000)
    assert pool.job("a").done_s == done_s
