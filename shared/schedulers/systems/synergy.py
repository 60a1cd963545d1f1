"""Synergy (Mohan et al., OSDI'22): cores and memory of nodes go to the jobs that they speed up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shared.schedulers.hooks import (
    Allotments,
    Decides,
    Hooks,
    HostShares,
    Memory,
    Need,
    Placements,
    admit,
)
from shared.schedulers.host_shares.allot import Needs, tune
from shared.schedulers.host_shares.node_shares import HostCapacity
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.view import ClusterView, TypedNode


class Synergy(Hooks):
    """First come, first served, tuned: no job is slower than with its part of the cores and memory.

    Nodes are picked anew in each round. A job of which no sensitivity is known gets its part.
    """

    name: ClassVar[str] = "synergy"
    source: ClassVar[str] = "Mohan et al., OSDI'22, tuned"
    needs: ClassVar[tuple[Need, ...]] = ("sensitivity",)
    decides: ClassVar[tuple[Decides, ...]] = ("order", "nodes", "cores and memory")

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        return admit(view, ranked, {})

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        """Return nodes; cores and memory are decided with them, and kept for `share_hosts`."""
        placements: Placements = {}
        shares: dict[str, list[int]] = {}
        for gpu_type in view.gpus_of_type:
            nodes = [node for node in view.nodes if node.gpu_type == gpu_type and node.gpus > 0]
            jobs = [
                Needs(job_id, own.gpus, requested(view, job_id, nodes))
                for job_id, own in allotments.items()
                if own.gpu_type == gpu_type
            ]
            capacity = [HostCapacity(node.gpus, node.cpu_milli, node.mem_mib) for node in nodes]
            for job_id, own in tune(capacity, jobs).items():
                placements[job_id] = tuple(
                    (nodes[number].node_id, gpus) for number, gpus in sorted(own.gpus.items())
                )
                shares[job_id] = list(own.share)
        memory["shares"] = shares
        return placements

    def share_hosts(self, view: ClusterView, placements: Placements, memory: Memory) -> HostShares:
        return {job_id: PerGpu(*memory["shares"][job_id]) for job_id in placements}


def requested(view: ClusterView, job_id: str, nodes: Sequence[TypedNode]) -> PerGpu:
    """Return what gives a job full speed; where that is unknown, the largest part of a GPU."""
    sensitivity = view.job_by_id[job_id].estimates.sensitivity
    if sensitivity is not None:
        return sensitivity.saturating()
    return PerGpu(
        max(node.cpu_milli // node.gpus for node in nodes),
        max(node.mem_mib // node.gpus for node in nodes),
    )
