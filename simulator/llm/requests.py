"""Requests of a trace of LLM calls, and what became of them in a study."""

from __future__ import annotations

from dataclasses import dataclass

from services.throttle.core.disciplines.request import ServedRequest


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One call of a trace; counts in tokens, `arrival_s` from the start of the trace.

    Traces have no `max_output_tokens`: as in the evaluation of VTC, the length of the answer is
    taken for it, which only the engine's admission reads.
    """

    request_id: str
    tenant: str
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    application: str = "default"
    interaction: str = ""
    stage: int = 0
    system_tokens: int = 0

    def served(self) -> ServedRequest:
        """Return the request as disciplines see it, anew for each policy."""
        return ServedRequest(
            self.request_id,
            self.tenant,
            self.prompt_tokens,
            self.output_tokens,
            int(1000 * self.arrival_s),
            application=self.application,
            interaction=self.interaction,
            is_issued=True,
            stage=self.stage,
            system_tokens=self.system_tokens,
        )


@dataclass(slots=True)
class Outcome:
    """The times at which a request was started, made its first token and ended, in s of the study.

    All are 0 for one that was refused.
    """

    request: TraceRequest
    refused: bool = False
    started_s: float = 0.0
    first_s: float = 0.0
    finished_s: float = 0.0

    @property
    def queued_s(self) -> float:
        return self.started_s - self.request.arrival_s
