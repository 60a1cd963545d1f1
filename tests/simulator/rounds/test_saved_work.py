from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history.distributions import BINS, bin_start_s, mean_left_s
from shared.performance.footprint import Footprint
from simulator.rounds.saved_work import CheckpointedWork, alone_on, rests_by_bin

ON = Footprint("gpu", (2, 2), 8)


def work(checkpoint_s: float = 60.0, rests_s: tuple[float, ...] = ()) -> CheckpointedWork:
    return CheckpointedWork(1000.0, alone_on("gpu", 4), checkpoint_s=checkpoint_s, rests_s=rests_s)


def test_a_stop_keeps_the_last_checkpoint_of_the_attempt() -> None:
    own = work()
    own.run(ON, 150.0)
    own.stop()
    assert own.left_s(ON) == 880.0
    own.run(ON, 59.0)
    own.stop()
    assert own.left_s(ON) == 880.0
    own.run(ON, 61.0)
    own.stop()
    assert own.left_s(ON) == 820.0


def test_without_checkpoints_a_stop_keeps_nothing() -> None:
    own = work(checkpoint_s=0.0)
    own.run(ON, 999.0)
    own.stop()
    assert own.left_s(ON) == 1000.0


def test_the_rest_is_what_history_says_or_unknown() -> None:
    rests_s = tuple(float(b) for b in range(BINS))
    own = work(rests_s=rests_s)
    own.run(ON, 17.0)
    assert (own.estimates().work_left, own.estimates().source) == (8.0, "history")
    assert work().estimates().work_left is None


@pytest.mark.parametrize("b", [0, 7, 20, 40])
def test_rests_of_all_bins_are_those_of_the_live_distribution(b: int) -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(BINS))
    rests = rests_by_bin(p[None, :])
    assert rests[0, b] == pytest.approx(mean_left_s(p, bin_start_s(b) * 1.001))
