"""The order of jobs that priority recommends, as placement recorded it last."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from shared.contracts.placement import RanksChanged, RanksNoted
from shared.contracts.ranked_jobs import JobRank, apply_changes, ranks_of


@dataclass(slots=True)
class Ranks:
    """The last order from priority; jobs that are not known yet keep their place in it."""

    at: int = 0
    policy: str = ""
    model: str = ""
    """sha256 of the learned policy; empty: the base decided."""
    scores: dict[str, float] = field(default_factory=dict)
    """By job id: of waiting jobs, and where rank may stop jobs of those on GPUs as well."""
    gittins_s: dict[str, float] = field(default_factory=dict)
    """By job id: Gittins rank of jobs on GPUs in cluster seconds, where stops have a price."""
    run_s: dict[str, float] = field(default_factory=dict)
    """By job id: predicted run time of waiting jobs in cluster s, where a round decides by it."""


@dataclass(slots=True)
class NamedOrder:
    """All jobs that priority's last order names, where changes to it follow.

    `Ranks` has those that were of use when the order came; which ones are may change until the
    next one comes.
    """

    policy: str
    model: str
    waiting: dict[str, JobRank]
    running: dict[str, JobRank]
    number: int = 0
    """Rankings since the order was noted in full."""

    def apply(self, event: RanksChanged) -> None:
        """Take over the changes of the next ranking."""
        self.number = event.number
        apply_changes(self.waiting, event.ranked, event.left_ranked)
        apply_changes(self.running, event.running, event.left_running)

    def of_use(
        self, at: int, is_waiting: Container[str], known: Container[str], holders: Container[str]
    ) -> Ranks:
        """Return the ranks of waiting and of unknown jobs, and of the holders of GPUs."""
        ranks = Ranks(at, self.policy, self.model)
        for job_id, rank in self.running.items():
            if job_id in holders:
                ranks.scores[job_id] = rank.score
                if rank.gittins_s is not None:
                    ranks.gittins_s[job_id] = rank.gittins_s
        for job_id, rank in self.waiting.items():
            if job_id in is_waiting or job_id not in known:
                ranks.scores[job_id] = rank.score
                if rank.run_s is not None:
                    ranks.run_s[job_id] = rank.run_s
        return ranks


def named_order(event: RanksNoted) -> NamedOrder:
    waiting, running = ranks_of(event.ranked), ranks_of(event.running)
    return NamedOrder(event.base_policy, event.model_sha256, waiting, running)
