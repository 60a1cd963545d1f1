"""Measurements that nodes made of themselves, as sentences about a suspected one.

Pure, disposable, and not part of the ledger: a shell keeps one `NodeNotes` per lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from shared.contracts.measurements import GpuReading, MeasuredNode
from shared.contracts.reports import TelemetryReported

MOST_NODES = 20_000
PROBE_FRESH_MS = 6 * 3_600_000
"""Age up to which a probe of idle processors counts."""
READING_FRESH_MS = 300_000
LEAST_PEERS = 3
SLOWER = 1.1
NAMES = {
    "power_cap": "its power cap",
    "heat": "heat",
    "power_brake": "a power brake",
    "hardware": "its hardware",
    "sync_boost": "its sync boost group",
}


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of idle processors, s."""

    at: int
    gpu_type: str
    compute_s: float
    copy_s: float


class NodeNotes:
    """The newest measurements by node; those measured longest ago are forgotten first."""

    def __init__(self) -> None:
        self._probes: dict[str, Probe] = {}
        self._gpus: dict[str, tuple[int, tuple[GpuReading, ...]]] = {}

    def add(self, report: TelemetryReported) -> None:
        for node in report.nodes:
            self._note(node, report.at)

    def of(self, node_id: str, at: int) -> tuple[str, ...]:
        """Return sentences about a node; none where nothing was measured lately."""
        return (*self._probe(node_id, at), *self._readings(node_id, at))

    def _note(self, node: MeasuredNode, at: int) -> None:
        if node.compute_s is not None and node.copy_s is not None:
            self._probes.pop(node.node_id, None)
            probe = Probe(at, node.gpu_type, node.compute_s, node.copy_s)
            self._probes[node.node_id] = probe
        if node.gpus:
            self._gpus.pop(node.node_id, None)
            self._gpus[node.node_id] = at, node.gpus
        if len(self._probes) > MOST_NODES:
            del self._probes[next(iter(self._probes))]
        if len(self._gpus) > MOST_NODES:
            del self._gpus[next(iter(self._gpus))]

    def _probe(self, node_id: str, at: int) -> Iterator[str]:
        own = self._probes.get(node_id)
        if own is None or at - own.at > PROBE_FRESH_MS:
            return
        peers = [
            probe
            for name, probe in self._probes.items()
            if name != node_id
            and probe.gpu_type == own.gpu_type
            and at - probe.at <= PROBE_FRESH_MS
        ]
        if len(peers) < LEAST_PEERS:
            return
        compute = own.compute_s / median(peer.compute_s for peer in peers)
        copy = own.copy_s / median(peer.copy_s for peer in peers)
        verdict = "slower than" if max(compute, copy) >= SLOWER else "as fast as"
        yield (
            f"a probe of {node_id} while idle, {max(0, at - own.at) // 60_000} min before, was"
            f" {verdict} those of {len(peers)} nodes of its type: computing {compute:.2f}, copying"
            f" memory {copy:.2f} times their median"
        )

    def _readings(self, node_id: str, at: int) -> Iterator[str]:
        read_at, gpus = self._gpus.get(node_id, (at, ()))
        if at - read_at <= READING_FRESH_MS:
            for gpu in gpus:
                yield from sentences(gpu)


def sentences(gpu: GpuReading) -> Iterator[str]:
    """Return what is unusual about a GPU; an idle clock is not."""
    if gpu.lost:
        yield f"GPU {gpu.gpu} does not answer"
    if gpu.xids:
        yield f"GPU {gpu.gpu} had the errors Xid {', '.join(map(str, gpu.xids))}{_named(gpu)}"
    if gpu.mig_instances is not None:
        yield f"GPU {gpu.gpu} is split by MIG into {gpu.mig_instances} instances"
    if gpu.slowdowns:
        reasons = " and ".join(NAMES[reason] for reason in gpu.slowdowns)
        clock = f", {gpu.sm_mhz} of {gpu.most_sm_mhz} MHz" if gpu.sm_mhz and gpu.most_sm_mhz else ""
        yield f"GPU {gpu.gpu} is slowed down by {reasons}{clock}"
    if gpu.uncorrected_errors:
        yield f"GPU {gpu.gpu} has {gpu.uncorrected_errors} uncorrected memory errors"
    if gpu.rows_failed:
        yield f"GPU {gpu.gpu} could not replace a memory row: it needs service{_named(gpu)}"
    elif gpu.rows_pending:
        yield f"GPU {gpu.gpu} replaces memory rows at its next reset{_named(gpu)}"
    if gpu.nvlinks and gpu.nvlinks_down:
        yield f"GPU {gpu.gpu} has {gpu.nvlinks_down} of {gpu.nvlinks} NVLinks down"
    if gpu.pcie_width and gpu.most_pcie_width and gpu.pcie_width < gpu.most_pcie_width:
        yield f"GPU {gpu.gpu} has {gpu.pcie_width} of {gpu.most_pcie_width} PCIe lanes"


def _named(gpu: GpuReading) -> str:
    """Return the UUID, by which a GPU is known outside of its node."""
    return f" ({gpu.uuid})" if gpu.uuid else ""
