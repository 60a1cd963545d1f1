"""One `rank` span per job: an order ranks many jobs, and each has a trace of its own."""

from __future__ import annotations

from collections.abc import Iterable

from shared.contracts.ranking import QueueChanged, QueueEntry, QueueRanked, Ranked
from shared.contracts.reranking import QueueReranked
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
        self._policy: Attributes = {}

    def observe(self, fact: Fact, started_ns: int, ended_ns: int) -> None:
        match fact.event:
            case QueueRanked() as order:
                self.remember_policy(order.base_policy, order.learned, order.model_sha256)
                for position, job in enumerate(order.ranked, start=1):
                    if job.job_id in self._waiting:
                        decision = self._decision(job, position, order.waiting)
                        self._emit(job.job_id, fact, decision, started_ns, ended_ns)
            case QueueReranked() as changes:
                for place, job in zip(changes.places, changes.ranked, strict=True):
                    decision = self._decision(job, place + 1, changes.waiting)
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

    def remember_policy(self, base_policy: str, learned: str, model_sha256: str) -> None:
        """Remember the policy of the last whole order: changes to it do not name it."""
        self._policy = {"decision.policy": base_policy}
        if model_sha256:
            self._policy["decision.learned"] = learned
            self._policy["decision.model_sha256"] = model_sha256

    def _decision(self, job: Ranked, position: int, waiting: int) -> Attributes:
        """Return the policy of the order and the job's queue position."""
        return self._policy | {
            "decision.score": job.score,
            "decision.position": position,
            "decision.waiting": waiting,
        }

    def _emit(
        self, job_id: str, fact: Fact, decision: Attributes, started_ns: int, ended_ns: int
    ) -> None:
        entry = self._waiting.pop(job_id, None)
        if entry is None:
            return
        attributes = attributes_of(fact) | {"job.id": job_id, "tenant.id": entry.tenant} | decision
        span = child_of(entry.traceparent)
        self._sink.put("rank", span, entry.traceparent, attributes, started_ns, ended_ns)
