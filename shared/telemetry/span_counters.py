"""The port through which spans that were exported, dropped or not sampled are counted."""

from __future__ import annotations

from typing import Protocol


class SpanCounters(Protocol):
    """Counters of spans by outcome; `metrics.Metrics` implements it."""

    def spans_exported(self, spans: int) -> None: ...

    def spans_dropped(self, spans: int, reason: str) -> None: ...

    def spans_unsampled(self, spans: int) -> None: ...
