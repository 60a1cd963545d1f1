"""Typed compilation with numba, and a disk cache that any changed source invalidates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

from services.placement.core.pool import loss_budget
from services.placement.core.round import progress
from services.priority.core.history import distributions as history
from services.priority.core.policies import keys

F = TypeVar("F", bound=Callable[..., Any])
_WITHIN = {
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
}
_njit: Any = njit
"""Untyped, because numba's types do not name all options."""


def compiled(function: F) -> F:
    """Compile a function for other compiled functions to call; Python itself cannot call it.

    That saves compile time. Nothing is allocated and no references are counted: the caller of the
    entry owns the arrays. Counting those of a tuple of arrays at every call made a run five times
    as long.
    """
    return cast(F, _njit(**_WITHIN)(function))


def entry(function: F) -> F:
    """Compile a function that Python calls; numba caches it on disk with everything that it calls.

    Numba checks the function's own file and its closure only: an entry closes over `SOURCES`, so
    that no stale code runs when a function that it calls was changed elsewhere.
    """
    assert function.__closure__, "an entry closes over the sources"
    return cast(F, _njit(cache=True, no_cfunc_wrapper=True)(function))


def _digest() -> str:
    """Return a digest of all sources that are compiled."""
    own = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256()
    for module in (history, keys, progress, loss_budget):
        digest.update(Path(str(module.__file__)).read_bytes())
    for path in own:
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCES = _digest()
