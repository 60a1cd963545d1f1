"""One `rank` span per job: an order ranks many jobs, and each has a trace of its own."""

from __future__ import annotations

from collections.abc import Iterable

from shared.contracts.ranking import QueueChanged, QueueEntry, QueueRanked
from shared.ledger.decider import Fact
from shared.telemetry.event_attributes import Attributes, attributes_of
from shared.telemetry.span_sink import SpanSink
from shared.telemetry.trace_ids import child_of

MAX_WAITING = 20_000
NOT_RANKED = "not_ranked"


class RankSpans:
    """Remembers jobs that enter the queue until the first order that ranks them.

    A job that starts or leaves before has a span with the reason `not_ranked`. The memory is
    bounded and ends with the process; the trace then lacks this span, nothing else.
    """

    def __init__(self, sink: SpanSink) -> None:
        self._sink = sink
        self._waiting: dict[str, QueueEntry] = {}

    def observe(self, fact: Fact, started_ns: int, ended_ns: int) -> None:
        match fact.event:
            case QueueRanked(ranked=ranked) as order:
                for position, job in enumerate(ranked, start=1):
                    if job.job_id in self._waiting:
                        decision = _decision(order, position, job.score)
                        self._emit(job.job_id, fact, decision, started_ns, ended_ns)
            case QueueChanged(entered=entered, running=running, left=left):
                self.remember(entered)
                for job_id in [*(job.job_id for job in running), *left]:
                    decision = {"decision.reason": NOT_RANKED}
                    self._emit(job_id, fact, decision, started_ns, ended_ns)

    def remember(self, entered: Iterable[QueueEntry]) -> None:
        self._waiting |= {entry.job_id: entry for entry in entered if entry.traceparent}
        while len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _emit(
        self, job_id: str, fact: Fact, decision: Attributes, started_ns: int, ended_ns: int
    ) -> None:
        entry = self._waiting.pop(job_id, None)
        if entry is None:
            return
        attributes = attributes_of(fact) | {"job.id": job_id, "tenant.id": entry.tenant} | decision
        span = child_of(entry.traceparent)
        self._sink.put("rank", span, entry.traceparent, attributes, started_ns, ended_ns)


def _decision(order: QueueRanked, position: int, score: float) -> Attributes:
    """Return the policy of the order and the job's queue position."""
    attributes: Attributes = {
        "decision.policy": order.base_policy,
        "decision.score": score,
        "decision.position": position,
        "decision.waiting": order.waiting,
    }
    if order.model_sha256:
        attributes["decision.learned"] = order.learned
        attributes["decision.model_sha256"] = order.model_sha256
    return attributes
