"""Distributions that history gives each job of a trace, from the jobs that had ended before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from services.priority.core.history.distributions import BINS
from simulator.kernel import estimates, keys
from simulator.kernel.compiled import SOURCES, entry
from simulator.kernel.state import Bools, Floats, Ints
from simulator.kernel.work import Work


def distributions_of(
    work: Work, ends_ms: Ints | None = None, guards: bool = estimates.GUARDS
) -> Floats:
    """Return [n, BINS]; without `ends_ms` as if each job had run as soon as it was submitted.

    A job that ends in the same ms as another is submitted counts for it, as in the live fold.
    `guards`: the setting `guard_predictions`, by which failures at once teach nothing.
    """
    if ends_ms is None:
        ends_ms = work.submit_ms + work.duration_ms
    order = np.argsort(ends_ms, kind="stable")
    counts = np.zeros((work.group_count, BINS))
    distributions = np.zeros((len(work), BINS))
    fill_all(
        order,
        work.submit_ms,
        ends_ms,
        work.duration_ms,
        work.failed,
        guards,
        work.groups,
        counts,
        distributions,
    )
    return distributions


def _program(
    sources: str,
) -> Callable[[Ints, Ints, Ints, Ints, Bools, bool, Ints, Floats, Floats], None]:
    @entry
    def fill_all(
        order: Ints,
        submit_ms: Ints,
        ends_ms: Ints,
        duration_ms: Ints,
        failed: Bools,
        guards: bool,
        groups: Ints,
        counts: Floats,
        distributions: Floats,
    ) -> None:
        """Learn every end up to a submission, then fill its distribution; `order` is by end."""
        _ = sources
        ended = 0
        for j in range(len(submit_ms)):
            while ended < len(order) and ends_ms[order[ended]] <= submit_ms[j]:
                e = order[ended]
                run_s = duration_ms[e] / 1000.0
                is_cut_short = estimates.is_cut_short(guards, failed[e], run_s)
                if not is_cut_short or run_s > keys.mean_left_s(distributions[e], 0.0):
                    estimates.learn_run_time(groups[e], counts, run_s)
                ended += 1
            estimates.fill_distribution(groups[j], counts, distributions[j])

    return fill_all


fill_all = _program(SOURCES)
