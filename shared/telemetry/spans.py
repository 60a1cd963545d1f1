"""Spans of decisions and requests, recorded when they end; a no-op without an OTLP address."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shared.telemetry.event_attributes import attributes_of, sampled_by
from shared.telemetry.job_traces import JobTraces
from shared.telemetry.names import BOOKKEEPING, AttributeKey, AttributeValue, SpanName, span_of
from shared.telemetry.sampling import ALL
from shared.telemetry.trace_ids import child_of

if TYPE_CHECKING:
    from shared.contracts.ranking import QueueEntry
    from shared.ledger.decider import Fact
    from shared.telemetry.metrics import Metrics
    from shared.telemetry.rank_spans import RankSpans
    from shared.telemetry.span_sink import SpanSink

SHUTDOWN_TIMEOUT_S = 3.0


class OpenSpan:
    """A span in progress; its `traceparent` is passed on to its effects."""

    __slots__ = ("attributes", "traceparent")

    def __init__(self, traceparent: str, attributes: Mapping[AttributeKey, AttributeValue]) -> None:
        self.traceparent = traceparent
        self.attributes: dict[str, AttributeValue] = dict(attributes.items())

    def set(self, key: AttributeKey, value: AttributeValue) -> None:
        self.attributes[key] = value


class Spans:
    """The spans of one process. Calls cost microseconds, never block and accept malformed ids."""

    def __init__(
        self,
        service: str,
        otlp_url: str,
        instance: str,
        counters: Metrics | None = None,
        share: float = ALL,
        ca: Path | None = None,
    ) -> None:
        """`share` is the share of jobs, 0 to 1, with exported spans (see `sampling`); `ca` signs
        the certificate of an https address, by default an authority of the system."""
        self._sink: SpanSink | None = None
        self._ranks: RankSpans | None = None
        self._jobs = JobTraces()
        if otlp_url:  # importing the SDK costs 0.2 s and 10 MiB
            from shared.telemetry.rank_spans import RankSpans
            from shared.telemetry.span_sink import SpanSink

            self._sink = SpanSink(service, otlp_url, instance, counters, share, ca)
            self._ranks = RankSpans(self._sink)

    def record_decisions(
        self, facts: Sequence[Fact], parents: Sequence[str], started_ns: int, ended_ns: int
    ) -> None:
        """Record one span per accepted fact; `parents[i]` is the traceparent of its cause.

        A cause in the same trace is the parent; one in another trace is linked, and so are the
        last decision about the job and its start. A fact without a traceparent and one for
        bookkeeping have no span.
        """
        if self._sink is None or self._ranks is None:
            return
        for fact, parent in zip(facts, parents, strict=True):
            name, links = span_of(fact.event.TYPE), self._jobs.links(fact, parent)
            has_span = fact.traceparent and name not in BOOKKEEPING
            if has_span and self._sink.keeps(name, fact.traceparent, sampled_by(fact.event)):
                attributes = attributes_of(fact)
                self._sink.put(
                    name, fact.traceparent, parent, attributes, started_ns, ended_ns, links=links
                )
            self._ranks.observe(fact, started_ns, ended_ns)

    def remember_job(self, job_id: str, traceparent: str) -> None:
        """Record the first trace of a job that started before this process."""
        if self._sink is not None:
            self._jobs.remember(job_id, traceparent)

    def remember_waiting(self, entries: Iterable[QueueEntry]) -> None:
        """Record jobs that may not be ranked yet: the next order gives each a `rank` span."""
        if self._ranks is not None:
            self._ranks.remember(entries)

    def remember_policy(self, base_policy: str, learned: str, model_sha256: str) -> None:
        """Record the policy of the last whole order, which changes to it do not name."""
        if self._ranks is not None:
            self._ranks.remember_policy(base_policy, learned, model_sha256)

    @contextmanager
    def span(
        self,
        name: SpanName,
        parent_traceparent: str = "",
        attributes: Mapping[AttributeKey, AttributeValue] | None = None,
    ) -> Iterator[OpenSpan]:
        """Record a span around a block; its traceparent is valid even without export."""
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
                    is_server=True,
                )

    def shutdown(self, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
        """Export queued spans for at most `timeout_s`; the rest is counted as dropped."""
        if self._sink is not None:
            self._sink.shutdown(timeout_s)
