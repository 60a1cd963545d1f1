"""The report of the end of a request."""

from __future__ import annotations

from dataclasses import dataclass, replace

from services.throttle.relay.usage import TokenCount
from services.throttle.tickets import STOPPED
from shared.contracts.llm import RequestEnd, RequestOutcome


@dataclass(slots=True)
class RequestSettlement:
    """The end of a request; one whose client leaves is cancelled."""

    count: TokenCount
    outcome: RequestOutcome = "cancelled"
    upstream: str = ""
    reason: str = ""
    is_refused: bool = False
    """Whether no engine served any of it, so that nothing is charged."""
    whole_tokens: int = 0
    """Output tokens of a request that engines cannot stream, if its client leaves or the process
    stops: its whole reservation, as no engine says what it made, and some go on to the end."""
    is_cut: bool = False
    """Whether this process cut it off."""

    def report(self, request_id: str) -> RequestEnd:
        if self.is_refused:
            return RequestEnd(
                request_id=request_id,
                outcome=self.outcome,
                output_tokens=0,
                prompt_tokens=0,
                upstream=self.upstream,
                reason=self.reason,
            )
        return RequestEnd(
            request_id=request_id,
            outcome=self.outcome,
            output_tokens=self._output_tokens,
            prompt_tokens=self.count.prompt_tokens,
            cached_tokens=self.count.cached_tokens,
            upstream=self.upstream,
            reason=self.reason,
        )

    def report_cut(self, request_id: str) -> RequestEnd:
        """Return the end of a request that this process cuts off now, as it stops.

        It is charged as one whose client leaves: an engine that has not answered may have begun.
        """
        is_refused = self.is_refused and self.upstream != ""
        cut = replace(self, outcome="failed", reason=STOPPED, is_refused=is_refused, is_cut=True)
        return cut.report(request_id)

    @property
    def _output_tokens(self) -> int:
        if (self.is_cut or self.outcome == "cancelled") and self.count.usage is None:
            return max(self.count.output_tokens, self.whole_tokens)
        return self.count.output_tokens
