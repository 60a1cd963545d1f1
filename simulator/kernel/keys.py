"""The live policies' own scalar functions, compiled."""

from __future__ import annotations

import types
from typing import Any, TypeVar, cast

import numpy as np

from services.priority.core.history import distributions as history
from services.priority.core.policies import keys
from simulator.kernel.compiled import compiled

F = TypeVar("F")


def compile_twin(function: F, **others: Any) -> F:
    """Compile the function's own code, with the functions that it calls compiled as well."""
    own = cast(types.FunctionType, function)
    twin = types.FunctionType(own.__code__, {**own.__globals__, **others}, own.__name__)
    twin.__module__ = __name__
    return cast(F, compiled(twin))


smallest_first = compile_twin(keys.smallest_first)
sjf = compile_twin(keys.sjf)
saf = compile_twin(keys.saf)
f1 = compile_twin(keys.f1)
wfp3 = compile_twin(keys.wfp3)
unicep = compile_twin(keys.unicep)
multifactor = compile_twin(keys.multifactor)
las = compile_twin(keys.las)
srtf = compile_twin(keys.srtf)
srsf = compile_twin(keys.srsf)
banded = compile_twin(keys.banded)

bin_of = compile_twin(history.bin_of)
learn = compile_twin(history.add_sample)
shrink = compile_twin(history.shrink)
start = compile_twin(history.fill_prior)
quantile_s = compile_twin(history.quantile_s)

_LEVELS = np.array([history.bin_start_s(b) for b in range(history.BINS + 1)])


@compiled
def bin_start_s(b: int) -> float:
    """Return `history.bin_start_s` from a table: its powers cost more than all else computed with
    it.
    """
    return float(_LEVELS[b])


_OF_BINS: dict[str, Any] = {"bin_of": bin_of, "bin_start_s": bin_start_s}
mean_left_s = compile_twin(history.mean_left_s, **_OF_BINS)
mean_left_and_gittins_s = compile_twin(history.mean_left_and_gittins_s, **_OF_BINS)
