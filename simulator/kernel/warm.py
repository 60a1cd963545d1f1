"""History before a window begins, as if its jobs had run as soon as they were submitted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from services.priority.core.history import BINS
from simulator.kernel import estimates
from simulator.kernel.compiled import SOURCES, entry
from simulator.kernel.state import Floats, Ints
from simulator.kernel.work import Work


def learn_counts(work: Work, group_count: int | None = None) -> Floats:
    """Return counts [groups, BINS] after all jobs of `work`, in the order of their ends."""
    counts = np.zeros((group_count or work.group_count, BINS))
    ends_ms = work.submit_ms + work.duration_ms
    learn_all(np.argsort(ends_ms, kind="stable"), work.duration_ms, work.groups, counts)
    return counts


def _program(sources: str) -> Callable[[Ints, Ints, Ints, Floats], None]:
    @entry
    def learn_all(order: Ints, duration_ms: Ints, groups: Ints, counts: Floats) -> None:
        """The run times of these jobs, one after the other."""
        _ = sources
        for j in order:
            estimates.learn_run_time(groups[j], counts, duration_ms[j] / 1000.0)

    return learn_all


learn_all = _program(SOURCES)
