"""Times and refusals that a process remembers between two looks at an engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.executor.core.engines.contract import EnginePhase, EngineState
from services.executor.core.engines.gangs import EngineGang
from shared.contracts.failures import Failure


@dataclass(slots=True)
class Memory:
    """Times by the executor's monotonic clock, s, and why it withdrew a gang."""

    waits_since_s: dict[str, float] = field(default_factory=dict)
    """By ref of a job that does not start."""
    signalled_s: dict[str, float] = field(default_factory=dict)
    forbidden_s: dict[str, float] = field(default_factory=dict)
    killed_s: dict[str, float] = field(default_factory=dict)
    first_killed_s: dict[str, float] = field(default_factory=dict)
    released_s: dict[str, float] = field(default_factory=dict)
    """By ref of a job that has ended and is in the ledger no more."""
    answers_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    """First and last of the looks in a row at which all nodes of a lost gang answered, by
    identity."""
    lost_s: dict[str, float] = field(default_factory=dict)
    """Of the first look at which a lost gang was not over, by identity."""
    refusals: dict[str, Failure] = field(default_factory=dict)
    """By identity."""

    def prune(self, gangs: dict[str, EngineGang], observation: EngineState) -> None:
        """Forget what is over."""
        refs = {job.ref for job in observation.jobs if job.phase is not EnginePhase.ENDED}
        ends = (self.signalled_s, self.forbidden_s, self.killed_s, self.first_killed_s)
        for times in (self.waits_since_s, *ends):
            for ref in times.keys() - refs:
                del times[ref]
        kept = {job.ref for job in observation.jobs if job.is_kept}
        for ref in self.released_s.keys() - kept:
            del self.released_s[ref]
        for identity in self.refusals.keys() - gangs.keys():
            del self.refusals[identity]
        for identity in self.answers_s.keys() - gangs.keys():
            del self.answers_s[identity]
        for identity in self.lost_s.keys() - gangs.keys():
            del self.lost_s[identity]
