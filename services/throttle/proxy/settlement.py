"""The report of the end of a request."""

from __future__ import annotations

from dataclasses import dataclass

from services.throttle.relay.usage import TokenCount
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
            output_tokens=self.count.output_tokens,
            prompt_tokens=self.count.prompt_tokens,
            cached_tokens=self.count.cached_tokens,
            upstream=self.upstream,
            reason=self.reason,
        )
