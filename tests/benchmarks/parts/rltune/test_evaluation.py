"""The committed RLTune on a batch: no run times are known, no job is stopped, all end."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.rltune.evaluation import run_batch
from benchmarks.parts.rltune.network import read_weights
from simulator.kernel.batches import make_batches
from simulator.kernel.work import build_work
from simulator.workload.source import read_columns


@pytest.mark.parts
def test_a_batch_ends_and_depends_on_the_draws_alone() -> None:
    work = build_work(read_columns("synthetic:helios")).part(slice(0, 400))
    (batch,) = make_batches(work, 100, 1, 0, period=(0.0, 1.0))
    one, two = (run_batch(batch, read_weights(), np.random.default_rng(1)) for _ in range(2))
    assert one.ended.all()
    assert (one.starts == 1).all()
    assert (one.start_s >= one.submit_s).all()
    np.testing.assert_array_equal(one.start_s, two.start_s)
