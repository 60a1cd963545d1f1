"""Measurements that a node makes of itself, beside what its workers report."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared.contracts.base import Model

MAX_GPUS = 64
Slowdown = Literal["power_cap", "heat", "power_brake", "hardware", "sync_boost"]
"""Reasons why a GPU's clocks are below what it could do, as NVML names them."""
Seconds = Annotated[float, Field(gt=0, le=1e6)]
Clock = Annotated[int, Field(ge=0, le=100_000)]
Link = Annotated[int, Field(ge=0, le=64)]
GpuNumber = Annotated[int, Field(ge=0, lt=MAX_GPUS)]
"""The number of a GPU on its node."""
Xid = Annotated[int, Field(ge=0, le=100_000)]


class GpuReading(Model):
    """One GPU by NVML; a value that it does not have is absent."""

    gpu: int = Field(ge=0, lt=MAX_GPUS, description="its index")
    sm_mhz: Clock | None = Field(None, description="clock of its multiprocessors, MHz")
    most_sm_mhz: Clock | None = Field(None, description="highest such clock, MHz")
    slowdowns: tuple[Slowdown, ...] = Field(
        (), max_length=8, description="why its clocks are low; none: they are not"
    )
    uncorrected_errors: int | None = Field(
        None, ge=0, lt=2**53, description="memory errors since the driver was loaded"
    )
    pcie_width: Link | None = Field(None, description="lanes of its PCIe link")
    most_pcie_width: Link | None = Field(None, description="lanes that it could have")
    pcie_generation: Link | None = Field(None, description="generation of its link")
    most_pcie_generation: Link | None = Field(None, description="generation it could have")
    uuid: str = Field("", max_length=96, description="its UUID; empty: not known")
    nvlinks: Link | None = Field(None, description="its NVLinks, where one at least is up")
    nvlinks_down: Link | None = Field(None, description="those of them that are down")
    rows_pending: bool | None = Field(
        None, description="whether memory rows are replaced at the next reset"
    )
    rows_failed: bool | None = Field(
        None, description="whether a memory row could not be replaced: the GPU needs service"
    )
    name: str = Field("", max_length=96, description="its product name; empty: not known")
    mig_instances: int | None = Field(
        None, ge=0, le=64, description="instances that MIG splits it into; absent: MIG is off"
    )
    mig_uuids: tuple[Annotated[str, Field(max_length=96)], ...] = Field(
        (), max_length=64, description="UUIDs of these instances, where the driver says them"
    )
    mig_profiles: tuple[Annotated[str, Field(max_length=32)], ...] = Field(
        (), max_length=64, description="their profiles, as 1g.10gb; empty: not known"
    )
    xids: tuple[Xid, ...] = Field(
        (), max_length=8, description="its latest critical Xid errors since the boot"
    )
    lost: bool = Field(False, description="the driver lists it, and it does not answer")


class Measurements(Model):
    """A node at one moment: a probe of its processors while no worker runs, and its GPUs."""

    compute_s: Seconds | None = Field(
        None, description="s of a fixed computation on one processor; absent: workers run"
    )
    copy_s: Seconds | None = Field(None, description="s of copying a fixed piece of memory")
    gpus: tuple[GpuReading, ...] = Field((), max_length=MAX_GPUS, description="its GPUs")


class MeasuredNode(Measurements):
    """A node that measured itself (soft)."""

    node_id: str = Field(description="the node")
    gpu_type: str = Field("", description="its GPU type")
