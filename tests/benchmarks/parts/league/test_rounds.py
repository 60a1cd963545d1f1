from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.league.days import COSTS, counted
from benchmarks.parts.league.entrants import Entrant
from benchmarks.parts.league.rounds import ROUND_S, play_in_rounds
from benchmarks.parts.policies.continuous import Replay
from benchmarks.parts.policies.rules import SKIP_FCFS
from simulator.kernel.work import build_work
from simulator.workload.source import read_columns


@pytest.fixture(scope="module")
def replay() -> Replay:
    work = build_work(read_columns("synthetic:helios"))
    part = work.part(np.arange(len(work)) < 150)
    sizes = np.full(max(2, -(-int(part.gang.max()) // 8)), 8, np.int64)
    return Replay("synthetic", part, sizes, 0.9, COSTS)


def test_first_come_first_served_takes_as_long_in_rounds_but_for_the_rounds(replay: Replay) -> None:
    like = replay.run(SKIP_FCFS.rules)
    own = play_in_rounds(replay, Entrant("fcfs", "blind", None, "fcfs"), like)
    assert own.ended[own.fits].all()
    assert (own.starts[own.fits] == 1).all()
    assert own.lost_s.max() == pytest.approx(0.0, abs=1e-6)
    first = int(np.argmin(own.submit_s))
    assert 0.0 <= own.jct_s[first] - like.jct_s[first] <= ROUND_S


def test_stops_are_charged_as_by_the_kernel(replay: Replay) -> None:
    like = replay.run(SKIP_FCFS.rules)
    own = play_in_rounds(replay, Entrant("tiresias", "blind", None, "tiresias"), like)
    stopped = own.starts > 1
    assert (own.lost_s[stopped & own.ended] >= COSTS.restart_s - 1e-6).all()
    assert counted(own).sum() == counted(like).sum()
