"""The live policies' own lines, compiled."""

from __future__ import annotations

import types
from typing import Any, TypeVar, cast

import numpy as np

from services.priority.core import history, keys
from simulator.kernel.compiled import compiled

F = TypeVar("F")


def twin(function: F, **others: Any) -> F:
    """The function's own code, with the functions that it calls compiled as well."""
    own = cast(types.FunctionType, function)
    found = types.FunctionType(own.__code__, {**own.__globals__, **others}, own.__name__)
    found.__module__ = __name__
    return cast(F, compiled(found))


smallest_first = twin(keys.smallest_first)
sjf = twin(keys.sjf)
saf = twin(keys.saf)
f1 = twin(keys.f1)
wfp3 = twin(keys.wfp3)
unicep = twin(keys.unicep)
multifactor = twin(keys.multifactor)
las = twin(keys.las)
srtf = twin(keys.srtf)
srsf = twin(keys.srsf)
banded = twin(keys.banded)

bin_of = twin(history.bin_of)
learn = twin(history.learn)
shrink = twin(history.shrink)
start = twin(history.start)
quantile_s = twin(history.quantile_s)

_LEVELS = np.array([history.level_s(b) for b in range(history.BINS + 1)])


@compiled
def level_s(b: int) -> float:
    """`history.level_s`, whose powers take longer than all else that is asked with it."""
    return float(_LEVELS[b])
