"""Compiling with numba, typed; and a cache on disk that knows when any source has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

from services.priority.core import history, keys

F = TypeVar("F", bound=Callable[..., Any])
_WITHIN = {
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
}
_njit: Any = njit
"""Its types do not name all options."""


def compiled(function: F) -> F:
    """For other compiled functions to call: Python itself cannot, which saves compile time.

    Nothing is allocated and no references are counted: arrays belong to who called the entry.
    Counting those of a tuple of arrays at every call made a run five times as long.
    """
    return cast(F, _njit(**_WITHIN)(function))


def entry(function: F) -> F:
    """What Python calls. Numba keeps it on disk, with everything that it calls.

    Numba looks at the function's own file only, and at what it closes over: an entry closes over
    `SOURCES`, so that no stale code runs when a function that it calls was changed elsewhere.
    """
    assert function.__closure__, "an entry closes over the sources"
    return cast(F, _njit(cache=True, no_cfunc_wrapper=True)(function))


def _digest() -> str:
    """Of all that is compiled."""
    own = sorted(Path(__file__).parent.glob("*.py"))
    found = hashlib.sha256()
    for path in (*own, Path(history.__file__), Path(keys.__file__)):
        found.update(path.read_bytes())
    return found.hexdigest()


SOURCES = _digest()
