"""The live policies' own lines, compiled."""

from __future__ import annotations

import types

from numba import njit

from services.priority.core import history, keys


def compiled(function, **others):
    """The function's own code, with the functions that it calls compiled as well."""
    twin = types.FunctionType(
        function.__code__, {**function.__globals__, **others}, function.__name__
    )
    twin.__module__ = __name__
    return njit(cache=True)(twin)


fcfs = compiled(keys.fcfs)
smallest_first = compiled(keys.smallest_first)
sjf = compiled(keys.sjf)
saf = compiled(keys.saf)
f1 = compiled(keys.f1)
wfp3 = compiled(keys.wfp3)
unicep = compiled(keys.unicep)
multifactor = compiled(keys.multifactor)
las = compiled(keys.las)
srtf = compiled(keys.srtf)
srsf = compiled(keys.srsf)

bin_of = compiled(history.bin_of)
learn = compiled(history.learn)
shrink = compiled(history.shrink)
start = compiled(history.start)
level_s = compiled(history.level_s)
quantile_s = compiled(history.quantile_s)
mean_left_s = compiled(history.mean_left_s, bin_of=bin_of, level_s=level_s)
gittins_s = compiled(history.gittins_s, bin_of=bin_of, level_s=level_s)
