"""The state of a cluster as a scheduler sees it: plain data, ordered by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from shared.performance.footprint import Footprint
from shared.performance.goodput import GoodputModel
from shared.performance.interleaving import ALONE, GpuSharing, StageProfile
from shared.performance.links import GangSteps
from shared.performance.rates import RateTable
from shared.schedulers.host_shares.sensitivity import PerGpu, Sensitivity

Placement: TypeAlias = tuple[tuple[str, int], ...]
"""(node, GPUs on it); a node is named once."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of a job, each of which may be None: schedulers work without it.

    `source` is where they come from: `oracle`, `measured`, `user`, `history` or `none`.
    """

    source: str = "none"
    work_left: float | None = None
    """Units of work; `rates` has units per second."""
    rates: RateTable | None = None
    goodput: GoodputModel | None = None
    steps: GangSteps | None = None
    """Seconds of a step by the links of the gang, alone on them."""
    sensitivity: Sensitivity | None = None
    """Speed by cores and memory beside each GPU."""
    stages: StageProfile | None = None
    skew: float | None = None
    """Part of a model's bytes that its largest tensor has."""


UNKNOWN = Estimates()


@dataclass(frozen=True, slots=True)
class CandidateJob:
    """A job that has not ended; `placement` is empty while it waits.

    `gpus` were requested. A job that is not elastic has the same in `min_gpus` and `max_gpus`.
    `held_s` and `held_gpu_s` count all time on GPUs, restarts too.
    """

    job_id: str
    submit_s: float
    gpus: int
    min_gpus: int
    max_gpus: int
    tenant: str = ""
    weight: float = 1.0
    gpu_types: tuple[str, ...] = ()
    """Allowed types; empty: all."""
    preemptible: bool = True
    placement: Placement = ()
    neighbours: tuple[str, ...] = ()
    """Jobs that hold the same GPUs, ordered by id."""
    held_s: float = 0.0
    held_gpu_s: float = 0.0
    restarts: int = 0
    """Starts after the first one, changes of size and moves too."""
    estimates: Estimates = UNKNOWN
    host_share: PerGpu | None = None
    """Cores and memory beside each GPU at present, where a scheduler shares them."""

    @property
    def is_running(self) -> bool:
        return bool(self.placement)

    def may_use(self, gpu_type: str) -> bool:
        return not self.gpu_types or gpu_type in self.gpu_types


class TypedNode(NamedTuple):
    """A node on which jobs can start, with GPUs of one type; `gpus` counts them all.

    Cores and memory are those that schedulers may share between jobs, 0 where they may not.
    """

    node_id: str
    gpu_type: str
    gpus: int
    rack: str = ""
    usd_per_gpu_h: float = 0.0
    cpu_milli: int = 0
    mem_mib: int = 0


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """Starts, stops and changes of one round, at most."""

    moves: int = 1_000_000


@dataclass(frozen=True)
class ClusterView:
    """One moment. `round_s` is the time until the next decision, if nothing ends before."""

    now_s: float
    round_number: int
    """Rounds before this one."""
    seed: int
    round_s: float
    jobs: tuple[CandidateJob, ...]
    nodes: tuple[TypedNode, ...]
    limits: MoveLimits = field(default_factory=MoveLimits)
    sharing: GpuSharing = ALONE
    mixes_types: bool = False
    """Whether a gang may have GPUs of several types; it is as fast as the slowest of them."""

    @cached_property
    def job_by_id(self) -> Mapping[str, CandidateJob]:
        return {job.job_id: job for job in self.jobs}

    @cached_property
    def node_by_id(self) -> Mapping[str, TypedNode]:
        return {node.node_id: node for node in self.nodes}

    @cached_property
    def gpus_of_type(self) -> Mapping[str, int]:
        """Return GPUs by type, types in the order of the nodes."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            counts[node.gpu_type] = counts.get(node.gpu_type, 0) + node.gpus
        return counts

    def type_of(self, placement: Placement) -> str | None:
        """Return the type of a placement's first GPUs; None without GPUs."""
        return self.node_by_id[placement[0][0]].gpu_type if placement else None


def gpus_of(placement: Placement) -> int:
    return sum(gpus for _, gpus in placement)


def footprint_of(placement: Placement, node_by_id: Mapping[str, TypedNode]) -> Footprint:
    """Return the shape of a placement of at least one GPU."""
    nodes = [node_by_id[node_id] for node_id, _ in placement]
    racks = {node.rack for node in nodes}
    types = dict.fromkeys(node.gpu_type for node in nodes)
    return Footprint(
        nodes[0].gpu_type,
        tuple(gpus for _, gpus in placement),
        max(node.gpus for node in nodes),
        0 if "" in racks else len(racks),
        tuple(types)[1:],
        tuple(node.gpu_type for node in nodes) if len(types) > 1 else (),
    )
