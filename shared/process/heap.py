"""Sets the pause between searches for garbage of reference cycles in a service."""

from __future__ import annotations

import gc

YOUNG, MIDDLE, OLD = 20_000, 10, 10
"""Objects that are new until a search of those, and searches of an age until one of the next."""


def settle_heap() -> None:
    """Leave out what the start has made, and search less often.

    Modules, classes and a folded state live as long as the process. To walk all of them holds the
    event loop, and a few jobs or requests make a search of new objects due.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
