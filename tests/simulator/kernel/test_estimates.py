"""History as arrays of codes against `History`, group by group."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from services.priority.core.history.distributions import CUT_SHORT_S
from services.priority.core.history.history import History
from services.priority.core.history.job_groups import groups
from simulator.kernel.warm import learn_counts
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from tests.simulator.kernel.workloads import mixed


@pytest.mark.parametrize("guards", [False, True])
def test_learned_counts_equal_those_of_history(guards: bool) -> None:
    """A third of the jobs fail; of the short ones of these only those teach that outlived their
    prediction.
    """
    failing = Random(5)
    jobs = [replace(job, succeeded=failing.random() > 0.35) for job in mixed(200, 4)]
    work = build_work(columns_from(jobs))
    counts = learn_counts(work, guards=guards)
    history, predicted_s, kept = History(), dict[int, float](), 0
    events = [(int(ms), 1, at) for at, ms in enumerate(work.submit_ms)]
    events += [(int(ms), 0, at) for at, ms in enumerate(work.submit_ms + work.duration_ms)]
    for _, is_arrival, at in sorted(events):
        job = jobs[at]
        known = (job.tenant, job.user, job.name, float(work.gang[at]))
        if is_arrival:
            predicted_s[at] = history.estimate(*known).mean_s
            continue
        is_cut_short = guards and not job.succeeded and job.duration_s < CUT_SHORT_S
        if is_cut_short and job.duration_s <= predicted_s[at]:
            kept += 1
        else:
            history.learn(*known, job.duration_s)
    assert kept > 10 or not guards
    compared = set()
    for at, job in enumerate(jobs):
        named = groups(job.tenant, job.user, job.name, float(work.gang[at]))
        for level, group in enumerate(named):
            assert (group is None) == (work.groups[at, level] < 0)
            if group is not None:
                compared.add(group)
                np.testing.assert_array_equal(counts[work.groups[at, level]], history.counts[group])
    assert compared == set(history.counts)
