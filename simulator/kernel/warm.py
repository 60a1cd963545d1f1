"""History before a window begins, as if its jobs had run as soon as they were submitted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from services.priority.core.history.distributions import BINS
from simulator.kernel import estimates, keys
from simulator.kernel.compiled import SOURCES, entry
from simulator.kernel.state import Bools, Floats, Ints
from simulator.kernel.work import Work


def learn_counts(
    work: Work, group_count: int | None = None, guards: bool = estimates.GUARDS
) -> Floats:
    """Return counts [groups, BINS] after all jobs of `work`, in the order of their ends.

    `guards`: the setting `guard_predictions`, by which failures at once teach nothing.
    """
    counts = np.zeros((group_count or work.group_count, BINS))
    ends_ms = work.submit_ms + work.duration_ms
    learn_all(
        np.argsort(ends_ms, kind="stable"),
        work.submit_ms,
        ends_ms,
        work.failed,
        guards,
        work.groups,
        counts,
        np.zeros(len(work)),
        np.zeros(BINS),
    )
    return counts


def _program(
    sources: str,
) -> Callable[[Ints, Ints, Ints, Bools, bool, Ints, Floats, Floats, Floats], None]:
    @entry
    def learn_all(
        order: Ints,
        submit_ms: Ints,
        ends_ms: Ints,
        failed: Bools,
        guards: bool,
        groups: Ints,
        counts: Floats,
        predicted_s: Floats,
        p: Floats,
    ) -> None:
        """Learn every end; of what is cut short, predict the run time at the submission."""
        _ = sources
        arrived = 0
        for e in order:
            while arrived < len(submit_ms) and submit_ms[arrived] < ends_ms[e]:
                run_s = (ends_ms[arrived] - submit_ms[arrived]) / 1000.0
                if estimates.is_cut_short(guards, failed[arrived], run_s):
                    estimates.fill_distribution(groups[arrived], counts, p)
                    predicted_s[arrived] = keys.mean_left_s(p, 0.0)
                arrived += 1
            run_s = (ends_ms[e] - submit_ms[e]) / 1000.0
            is_cut_short = estimates.is_cut_short(guards, failed[e], run_s)
            if not is_cut_short or run_s > predicted_s[e]:
                estimates.learn_run_time(groups[e], counts, run_s)

    return learn_all


learn_all = _program(SOURCES)
