"""Spans of decisions and requests, emitted after the fact; a no-op without an OTLP address."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shared.telemetry.event_attributes import attributes_of
from shared.telemetry.job_traces import JobTraces
from shared.telemetry.names import BOOKKEEPING, AttributeKey, AttributeValue, SpanName, span_of
from shared.telemetry.sampling import ALL
from shared.telemetry.span_counters import SpanCounters
from shared.telemetry.trace_ids import child_of

if TYPE_CHECKING:
    from shared.contracts.ranking import QueueEntry
    from shared.ledger.decider import Fact
    from shared.telemetry.rank_spans import RankSpans
    from shared.telemetry.span_sink import SpanSink

SHUTDOWN_TIMEOUT_S = 3.0


class OpenSpan:
    """A span that is under way; its `traceparent` goes along with what it causes."""

    __slots__ = ("attributes", "traceparent")

    def __init__(self, traceparent: str, attributes: Mapping[AttributeKey, AttributeValue]) -> None:
        self.traceparent = traceparent
        self.attributes: dict[str, AttributeValue] = dict(attributes.items())

    def set(self, key: AttributeKey, value: AttributeValue) -> None:
        self.attributes[key] = value


class Spans:
    """One per process. Calls cost microseconds, never block and never raise for bad ids."""

    def __init__(
        self,
        service: str,
        otlp_url: str,
        instance: str,
        counters: SpanCounters | None = None,
        share: float = ALL,
        ca: Path | None = None,
    ) -> None:
        """`share` of the jobs, 0 to 1, whose spans are sent; see `sampling`. `ca` signs the
        certificate of an https address; without it the system's authorities do."""
        self._sink: SpanSink | None = None
        self._ranks: RankSpans | None = None
        self._jobs = JobTraces()
        if otlp_url:  # the SDK costs 0.2 s and 10 MiB
            from shared.telemetry.rank_spans import RankSpans
            from shared.telemetry.span_sink import SpanSink

            self._sink = SpanSink(service, otlp_url, instance, counters, share, ca)
            self._ranks = RankSpans(self._sink)

    def record_decisions(
        self, facts: Sequence[Fact], parents: Sequence[str], started_ns: int, ended_ns: int
    ) -> None:
        """One span per accepted fact; `parents[i]` is the traceparent of what caused `facts[i]`.

        In the same trace the cause is the parent, in another it is linked, and so are the last
        decision about the job and its start. A fact without a traceparent, and one that only keeps
        the books, has no span.
        """
        if self._sink is None or self._ranks is None:
            return
        for fact, parent in zip(facts, parents, strict=True):
            name, links = span_of(fact.event.TYPE), self._jobs.links(fact, parent)
            if fact.traceparent and name not in BOOKKEEPING:
                attributes = attributes_of(fact)
                self._sink.put(
                    name, fact.traceparent, parent, attributes, started_ns, ended_ns, links=links
                )
            self._ranks.note(fact, started_ns, ended_ns)

    def remember_job(self, job_id: str, traceparent: str) -> None:
        """A job of an earlier life of this process, and where its first trace is."""
        if self._sink is not None:
            self._jobs.tell(job_id, traceparent)

    def remember_waiting(self, entries: Iterable[QueueEntry]) -> None:
        """Jobs in line that may not have been ranked yet: each has a `rank` span with the next."""
        if self._ranks is not None:
            self._ranks.remember(entries)

    @contextmanager
    def span(
        self,
        name: SpanName,
        parent_traceparent: str = "",
        attributes: Mapping[AttributeKey, AttributeValue] | None = None,
    ) -> Iterator[OpenSpan]:
        """A span around a block; its traceparent is real even when spans are off."""
        span = OpenSpan(child_of(parent_traceparent), attributes or {})
        started_ns = time.time_ns()
        try:
            yield span
        except BaseException as error:
            span.set("error.type", type(error).__name__)
            raise
        finally:
            if self._sink is not None:
                self._sink.put(
                    name,
                    span.traceparent,
                    parent_traceparent,
                    span.attributes,
                    started_ns,
                    time.time_ns(),
                    serves=True,
                )

    def shutdown(self, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
        """Sends what is queued, for at most `timeout_s`; the rest is counted as dropped."""
        if self._sink is not None:
            self._sink.shutdown(timeout_s)
