"""One `rank` span per job: priority writes one order for many jobs, each has a trace of its own."""

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
    """Remembers who entered the line until the first order that names them.

    A job that gets GPUs or leaves before that has a span too, which says `not_ranked`. The memory
    is bounded and dies with the process: then a trace lacks this span, nothing else.
    """

    def __init__(self, sink: SpanSink) -> None:
        self._sink = sink
        self._waiting: dict[str, QueueEntry] = {}

    def note(self, fact: Fact, started_ns: int, ended_ns: int) -> None:
        match fact.event:
            case QueueRanked(ranked=ranked) as order:
                for position, job in enumerate(ranked, start=1):
                    if job.job_id in self._waiting:
                        said = _said(order, position, job.score)
                        self._emit(job.job_id, fact, said, started_ns, ended_ns)
            case QueueChanged(entered=entered, running=running, left=left):
                self.remember(entered)
                for job_id in [*(job.job_id for job in running), *left]:
                    said = {"decision.reason": NOT_RANKED}
                    self._emit(job_id, fact, said, started_ns, ended_ns)

    def remember(self, entered: Iterable[QueueEntry]) -> None:
        self._waiting |= {entry.job_id: entry for entry in entered if entry.traceparent}
        while len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _emit(
        self, job_id: str, fact: Fact, said: Attributes, started_ns: int, ended_ns: int
    ) -> None:
        entry = self._waiting.pop(job_id, None)
        if entry is None:
            return
        attributes = attributes_of(fact) | {"job.id": job_id, "tenant.id": entry.tenant} | said
        own = child_of(entry.traceparent)
        self._sink.put("rank", own, entry.traceparent, attributes, started_ns, ended_ns)


def _said(order: QueueRanked, position: int, score: float) -> Attributes:
    """What decided, and the job's place in line."""
    said: Attributes = {
        "decision.policy": order.base_policy,
        "decision.score": score,
        "decision.position": position,
        "decision.waiting": order.waiting,
    }
    if order.model_sha256:
        said["decision.learned"] = order.learned
        said["decision.model_sha256"] = order.model_sha256
    return said
