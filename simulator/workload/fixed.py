"""Jobs that may not be preempted: a share of them, drawn by their number alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.workload.draws import draw_uniform


def draw_fixed(jobs: int, share: float) -> NDArray[np.bool_]:
    """Return [jobs], whether each may not be preempted; a larger share keeps those of a smaller."""
    if share <= 0.0:
        return np.zeros(jobs, np.bool_)
    return draw_uniform(jobs) < share
