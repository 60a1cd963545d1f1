"""Rounds: a scheduler decides, its proposal is checked, jobs run until the next decision."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from shared.performance.footprint import Footprint
from shared.performance.interleaving import ALONE, GpuSharing, speed_in_group
from shared.performance.restarts import FREE, RestartCosts
from shared.schedulers.check import ProposalRefused, check
from shared.schedulers.compose import Proposal, change_of, propose
from shared.schedulers.hooks import Memory, Scheduler
from shared.schedulers.view import ClusterView, MoveLimits, TypedNode, footprint_of, gpus_of
from simulator.rounds.job import RoundsJob
from simulator.rounds.outcome import Refusal, RoundsOutcome
from simulator.rounds.work import ROUNDING, SavedWork


@dataclass(frozen=True, slots=True)
class RoundsOptions:
    """`ends_with_work`: a round is over when the last of its jobs has done what it does in it, and
    an empty cluster waits for the next job (Gavel); else decisions are at multiples of `round_s`.
    `on_events`: decisions are when a job comes or ends, and after `round_s` without one.
    `restarts_at_decisions`: each decision restarts all jobs that run, and the next one comes as if
    restarts took no time (the released simulator of Muri). `first_start_is_free`: a job pays for a
    restart from its second start on, as in the kernel and on virtual nodes. `horizon_s`: time after
    which a run ends although jobs are left. `mixes_types`: a gang may have GPUs of several types.
    """

    round_s: float = 360.0
    seed: int = 0
    restarts: RestartCosts = FREE
    ends_with_work: bool = False
    on_events: bool = False
    restarts_at_decisions: bool = False
    first_start_is_free: bool = False
    horizon_s: float = math.inf
    limits: MoveLimits = field(default_factory=MoveLimits)
    sharing: GpuSharing = ALONE
    mixes_types: bool = False


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
        self._by_id = {job.job_id: job for job in self.jobs}
        self.refusals: list[Refusal] = []
        self.number = 0
        self.now_s = 0.0
        self._submitted = 0
        self._wake_s: float | None = None
        self._active: list[RoundsJob] = []

    def run(self, until: Collection[str] | None = None) -> RoundsOutcome:
        """Run until all jobs have ended, or those of `until`."""
        waited_for = set(until if until is not None else (job.job_id for job in self.jobs))
        self._wait_for_job()
        while waited_for and self._active and self.now_s < self.options.horizon_s:
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
            self.options.sharing,
            self.options.mixes_types,
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
        self._wake_s = proposal.wake_s
        self._carry_out(view, proposal)
        for job in self._active:
            job.host_share = proposal.host_shares.get(job.job_id)
            if job.host_sharing is not None:
                job.host_sharing.hold(job.host_share)

    def advance(self, waited_for: set[str]) -> bool:
        """Run all jobs to the next decision; return whether any job is left then."""
        longest_s = 0.0
        speeds = {job.job_id: self._speed(job) for job in self._active if job.placement}
        round_s = self._until_event(speeds) if self.options.on_events else self.options.round_s
        for job in self._active:
            if job.placement:
                longest_s = max(longest_s, self._run(job, round_s, speeds[job.job_id]))
        waited_for.difference_update(job.job_id for job in self._active if job.end_s is not None)
        self._active = [job for job in self._active if job.end_s is None]
        self._forget_ended()
        self.number += 1
        if not self.options.ends_with_work:
            self.now_s += round_s
        elif longest_s > 0.0:
            self.now_s += longest_s
        elif self._submitted < len(self.jobs):
            self.now_s = max(self.now_s, self.jobs[self._submitted].submit_s)
        else:
            self.now_s += self.options.round_s
        self._submit()
        return bool(self._active)

    def _speed(self, job: RoundsJob) -> float:
        """Return the speed of a job beside its neighbours, relative to that alone."""
        others = [self._by_id[job_id].stages for job_id in job.neighbours]
        return speed_in_group(job.stages, others, self.options.sharing)

    def _until_event(self, speeds: Mapping[str, float]) -> float:
        """Return the seconds until a job comes or ends or the scheduler has to decide again, at
        most those of a round."""
        until_s = self.options.round_s
        if self._wake_s is not None and self._wake_s > self.now_s:
            until_s = min(until_s, self._wake_s - self.now_s)
        if self._submitted < len(self.jobs):
            until_s = min(until_s, self.jobs[self._submitted].submit_s - self.now_s)
        for job in self._active:
            if job.footprint is None or not job.placement:
                continue
            left_s = job.work.left_s(job.footprint)
            if left_s is not None:
                delay_s = 0.0 if self.options.restarts_at_decisions else job.restart_left_s
                until_s = min(until_s, delay_s + left_s / speeds[job.job_id])
        return until_s

    def _forget_ended(self) -> None:
        """Let no job have a neighbour that has ended."""
        for job in self._active:
            if job.neighbours:
                others = job.neighbours
                job.neighbours = tuple(o for o in others if self._by_id[o].end_s is None)

    def _run(self, job: RoundsJob, round_s: float, speed: float) -> float:
        """Run one job in the round, and return the seconds that it took."""
        assert job.footprint is not None
        delay_s = self._delay_s(job, job.footprint, round_s, speed)
        job.restart_left_s -= delay_s
        seconds, has_ended = delay_s, False
        if delay_s < round_s:
            ran = job.work.run(job.footprint, (round_s - delay_s) * speed)
            seconds, has_ended = delay_s + ran.seconds / speed, ran.has_ended
        gpus = gpus_of(job.placement)
        job.held_s += seconds
        job.held_gpu_s += seconds * gpus
        if has_ended:
            job.end_s = self.now_s + seconds
            job.placement = ()
        return seconds

    def _delay_s(self, job: RoundsJob, on: Footprint, round_s: float, speed: float) -> float:
        """Return the seconds of the round that a restart takes."""
        if self.options.restarts_at_decisions:
            job.restart_left_s = self._restart_s(job)
            left_s = job.work.left_s(on)
            if left_s is not None and left_s / speed <= round_s * (1.0 + ROUNDING):
                return 0.0
        return min(job.restart_left_s, round_s)

    def _restart_s(self, job: RoundsJob) -> float:
        """Return the seconds of a restart; jobs on the same GPUs start one after another."""
        if self.options.first_start_is_free and job.starts <= 1:
            return 0.0
        usual_s = self.options.restarts.seconds(gpus_of(job.placement))
        together = [job, *(self._by_id[job_id] for job_id in job.neighbours)]
        return sum(usual_s if own.restart_s is None else own.restart_s for own in together)

    def _carry_out(self, view: ClusterView, proposal: Proposal) -> None:
        for job in self._active:
            change = change_of(view.job_by_id[job.job_id], proposal)
            job.neighbours = proposal.neighbours.get(job.job_id, ())
            if change is None:
                continue
            if change != "start" and isinstance(job.work, SavedWork):
                job.work.stop()
            job.placement = proposal.placements.get(job.job_id, ())
            if not job.placement:
                continue
            job.footprint = footprint_of(job.placement, self.nodes)
            job.work.settle(job.footprint)
            job.starts += 1
            job.restart_left_s = self._restart_s(job)
            if job.first_start_s is None:
                job.first_start_s = self.now_s

    def _wait_for_job(self) -> None:
        """Let time pass until a job is submitted, if none is there."""
        while not self._active and self._submitted < len(self.jobs):
            next_s = self.jobs[self._submitted].submit_s
            if not (self.options.ends_with_work or self.options.on_events):
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
