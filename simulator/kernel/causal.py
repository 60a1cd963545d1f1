"""Distributions that history gives each job of a trace, from the jobs that had ended before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from services.priority.core.history import BINS
from simulator.kernel import estimates
from simulator.kernel.compiled import SOURCES, entry
from simulator.kernel.state import Floats, Ints
from simulator.kernel.work import Work


def distributions_of(work: Work, ends_ms: Ints | None = None) -> Floats:
    """Return [n, BINS]; without `ends_ms` as if each job had run as soon as it was submitted.

    A job that ends in the same ms as another is submitted counts for it, as in the live fold.
    """
    if ends_ms is None:
        ends_ms = work.submit_ms + work.duration_ms
    order = np.argsort(ends_ms, kind="stable")
    counts = np.zeros((work.group_count, BINS))
    distributions = np.zeros((len(work), BINS))
    fill_all(order, work.submit_ms, ends_ms, work.duration_ms, work.groups, counts, distributions)
    return distributions


def _program(sources: str) -> Callable[[Ints, Ints, Ints, Ints, Ints, Floats, Floats], None]:
    @entry
    def fill_all(
        order: Ints,
        submit_ms: Ints,
        ends_ms: Ints,
        duration_ms: Ints,
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
                estimates.learn_run_time(groups[e], counts, duration_ms[e] / 1000.0)
                ended += 1
            estimates.fill_distribution(groups[j], counts, distributions[j])

    return fill_all


fill_all = _program(SOURCES)
