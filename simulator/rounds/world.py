"""Rounds: a scheduler decides, its proposal is checked, jobs run until the next decision."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from shared.performance.footprint import Footprint
from shared.performance.restarts import FREE, RestartCosts
from shared.schedulers.check import ProposalRefused, check
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory, Placements, Scheduler
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.view import (
    CandidateJob,
    ClusterView,
    MoveLimits,
    Placement,
    TypedNode,
    footprint_of,
    gpus_of,
)
from simulator.rounds.outcome import Refusal, RoundsJobOutcome, RoundsOutcome
from simulator.rounds.work import HostSharingWork, Work


@dataclass(slots=True)
class RoundsJob:
    """A job of the world. Without bounds of its own it is rigid."""

    job_id: str
    submit_s: float
    gpus: int
    work: Work
    min_gpus: int = 0
    max_gpus: int = 0
    tenant: str = ""
    weight: float = 1.0
    gpu_types: tuple[str, ...] = ()
    preemptible: bool = True
    placement: Placement = ()
    footprint: Footprint | None = None
    host_share: PerGpu | None = None
    restart_left_s: float = 0.0
    starts: int = 0
    first_start_s: float | None = None
    end_s: float | None = None
    held_s: float = 0.0
    held_gpu_s: float = 0.0

    def __post_init__(self) -> None:
        self.min_gpus = self.min_gpus or self.gpus
        self.max_gpus = self.max_gpus or self.gpus

    def candidate(self) -> CandidateJob:
        most = self.work.most_gpus()
        return CandidateJob(
            self.job_id,
            self.submit_s,
            self.gpus,
            self.min_gpus,
            self.max_gpus if most is None else most,
            self.tenant,
            self.weight,
            self.gpu_types,
            self.preemptible,
            self.placement,
            self.held_s,
            self.held_gpu_s,
            max(self.starts - 1, 0),
            self.work.estimates(),
            self.host_share,
        )

    def outcome(self) -> RoundsJobOutcome:
        return RoundsJobOutcome(
            self.job_id,
            self.submit_s,
            self.first_start_s,
            self.end_s,
            max(self.starts - 1, 0),
            self.held_gpu_s,
        )


@dataclass(frozen=True, slots=True)
class RoundsOptions:
    """`ends_with_work`: a round is over when the last of its jobs has done what it does in it, and
    an empty cluster waits for the next job (Gavel); else decisions are at multiples of `round_s`.
    """

    round_s: float = 360.0
    seed: int = 0
    restarts: RestartCosts = FREE
    ends_with_work: bool = False
    limits: MoveLimits = field(default_factory=MoveLimits)


class RoundsWorld:
    """A cluster, its jobs, and one scheduler with its memory."""

    def __init__(
        self,
        jobs: Sequence[RoundsJob],
        nodes: Sequence[TypedNode],
        scheduler: Scheduler,
        options: RoundsOptions | None = None,
    ) -> None:
        self.jobs = sorted(jobs, key=lambda job: (job.submit_s, job.job_id))
        self.nodes = {node.node_id: node for node in nodes}
        self.scheduler = scheduler
        self.options = options or RoundsOptions()
        self.memory: Memory = {}
        self.refusals: list[Refusal] = []
        self.number = 0
        self.now_s = 0.0
        self._submitted = 0
        self._active: list[RoundsJob] = []

    def run(self, until: Collection[str] | None = None) -> RoundsOutcome:
        """Run until all jobs have ended, or those of `until`."""
        waited_for = set(until if until is not None else (job.job_id for job in self.jobs))
        self._wait_for_job()
        while waited_for and self._active:
            self.decide()
            if not self.advance(waited_for):
                self._wait_for_job()
        outcomes = [job.outcome() for job in self.jobs]
        return RoundsOutcome(outcomes, self.refusals, self.number, self.now_s)

    def view(self) -> ClusterView:
        return ClusterView(
            self.now_s,
            self.number,
            self.options.seed,
            self.options.round_s,
            tuple(job.candidate() for job in self._active),
            tuple(self.nodes.values()),
            self.options.limits,
        )

    def decide(self) -> None:
        """Carry out the scheduler's proposal; one that is refused changes nothing."""
        view = self.view()
        proposal = propose(self.scheduler, view, self.memory)
        try:
            check(view, proposal)
        except ProposalRefused as refused:
            self.refusals.append(Refusal(self.now_s, refused.scheduler, refused.violation))
            return
        self._carry_out(proposal.placements)
        for job in self._active:
            job.host_share = proposal.host_shares.get(job.job_id)
            if isinstance(job.work, HostSharingWork):
                job.work.hold(job.host_share)

    def advance(self, waited_for: set[str]) -> bool:
        """Run all jobs to the next decision; return whether any job is left then."""
        longest_s = 0.0
        for job in self._active:
            if job.placement:
                longest_s = max(longest_s, self._run(job))
        for job in self._active:
            if job.end_s is not None:
                waited_for.discard(job.job_id)
        self._active = [job for job in self._active if job.end_s is None]
        self.number += 1
        if not self.options.ends_with_work:
            self.now_s += self.options.round_s
        elif longest_s > 0.0:
            self.now_s += longest_s
        elif self._submitted < len(self.jobs):
            self.now_s = max(self.now_s, self.jobs[self._submitted].submit_s)
        else:
            self.now_s += self.options.round_s
        self._submit()
        return bool(self._active)

    def _run(self, job: RoundsJob) -> float:
        """Run one job in the round, and return the seconds that it took."""
        assert job.footprint is not None
        delay_s = min(job.restart_left_s, self.options.round_s)
        job.restart_left_s -= delay_s
        seconds, has_ended = delay_s, False
        if delay_s < self.options.round_s:
            ran = job.work.run(job.footprint, self.options.round_s - delay_s)
            seconds, has_ended = delay_s + ran.seconds, ran.has_ended
        gpus = gpus_of(job.placement)
        job.held_s += seconds
        job.held_gpu_s += seconds * gpus
        if has_ended:
            job.end_s = self.now_s + seconds
            job.placement = ()
        return seconds

    def _carry_out(self, placements: Placements) -> None:
        for job in self._active:
            placement = placements.get(job.job_id, ())
            if placement == job.placement:
                continue
            job.placement = placement
            if not placement:
                continue
            job.footprint = footprint_of(placement, self.nodes)
            job.work.settle(job.footprint)
            job.starts += 1
            job.restart_left_s = self.options.restarts.seconds(gpus_of(placement))
            if job.first_start_s is None:
                job.first_start_s = self.now_s

    def _wait_for_job(self) -> None:
        """Let time pass until a job is submitted, if none is there."""
        while not self._active and self._submitted < len(self.jobs):
            next_s = self.jobs[self._submitted].submit_s
            if not self.options.ends_with_work:
                rounds = max(math.ceil(next_s / self.options.round_s), 1)
                next_s = rounds * self.options.round_s
            self.now_s = max(self.now_s, next_s)
            self._submit()

    def _submit(self) -> None:
        while self._submitted < len(self.jobs):
            job = self.jobs[self._submitted]
            if job.submit_s > self.now_s:
                return
            self._active.append(job)
            self._submitted += 1
