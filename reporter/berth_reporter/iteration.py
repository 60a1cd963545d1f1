"""An iteration that is running: what is measured while its body runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Iteration:
    """The quantities of one iteration; each may be set until it ends."""

    __slots__ = ("delay_s", "kind", "own_s", "phases", "samples", "tokens", "wait_s")

    def __init__(self, samples: int | None, tokens: int | None, kind: str) -> None:
        self.samples = samples
        self.tokens = tokens
        self.kind = kind
        self.own_s: float | None = None
        self.wait_s: float | None = None
        self.delay_s: float | None = None
        """s of own work in which the process waited for a processor of its host."""
        self.phases: dict[str, float] | None = None
        """s of each phase, such as `forward` and `comm.dp`."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the body to a phase."""
        begin_s = time.perf_counter()
        yield
        self.add(name, time.perf_counter() - begin_s)

    def add(self, name: str, seconds: float) -> None:
        """Add s to a phase."""
        phases = self.phases = {} if self.phases is None else self.phases
        phases[name] = phases.get(name, 0.0) + seconds
