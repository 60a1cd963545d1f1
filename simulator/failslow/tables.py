"""Series of different lengths side by side in one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.failslow.series import Floats


def columns_of(series: Sequence[Floats]) -> Floats:
    """Return [step, series]; a series that ended is continued by its last value."""
    longest = max((len(values) for values in series), default=0)
    table = np.zeros((longest, len(series)))
    for column, values in enumerate(series):
        if len(values):
            table[: len(values), column] = values
            table[len(values) :, column] = values[-1]
    return table
