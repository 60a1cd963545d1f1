"""A job of the world of rounds: what it requests, where it is, and what it has had."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shared.performance.footprint import Footprint
from shared.performance.interleaving import StageProfile
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.view import CandidateJob, Placement
from simulator.rounds.outcome import RoundsJobOutcome
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
    stages: StageProfile | None = None
    restart_s: float | None = None
    """Seconds of its own restarts; None: those of the world."""
    placement: Placement = ()
    neighbours: tuple[str, ...] = ()
    footprint: Footprint | None = None
    host_share: PerGpu | None = None
    restart_left_s: float = 0.0
    starts: int = 0
    first_start_s: float | None = None
    end_s: float | None = None
    held_s: float = 0.0
    held_gpu_s: float = 0.0
    host_sharing: HostSharingWork | None = field(default=None, init=False)
    """Its work where cores and memory count: a check of the protocol costs more than a round."""

    def __post_init__(self) -> None:
        if isinstance(self.work, HostSharingWork):
            self.host_sharing = self.work
        self.min_gpus = self.min_gpus or self.gpus
        self.max_gpus = self.max_gpus or self.gpus

    def candidate(self) -> CandidateJob:
        most = self.work.most_gpus()
        estimates = self.work.estimates()
        if self.stages is not None:
            estimates = replace(estimates, stages=self.stages)
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
            self.neighbours,
            self.held_s,
            self.held_gpu_s,
            max(self.starts - 1, 0),
            estimates,
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
