"""Problems of nodes that live, which an operator has to solve: a cloned identity, a full disk,
GPUs that failed, are slowed down, or are not those that the node declares."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from shared.contracts.base import Event, Model, Name, event
from shared.contracts.measurements import MAX_GPUS, GpuNumber

NodeProblem = Literal[
    "cloned_identity",
    "disk_full",
    "gpu_fault",
    "gpu_slow",
    "inventory_differs",
    "engine_drained",
    "foreign_work",
]
"""Another agent works with the identity of the node; the disk of its state folder is full, and it
takes no new work; a GPU needs a reset or service; a GPU is slowed down by heat or its power supply
for minutes; its GPUs are not those that it declares; the engine of the site starts nothing new on
it; GPUs of it are held by work that Berth did not start."""
DISK_FULL: Final[NodeProblem] = "disk_full"
NO_NEW_WORK: Final[frozenset[NodeProblem]] = frozenset(
    (DISK_FULL, "engine_drained", "foreign_work")
)
"""Problems during which nothing new is placed on the node; its jobs go on."""
GPU_FAULT: Final[NodeProblem] = "gpu_fault"
GPUS_UNUSABLE: Final[frozenset[NodeProblem]] = frozenset((GPU_FAULT, "inventory_differs"))
"""Problems of a node for which nothing may run on its GPUs; its cordon for them counts for no
bound of mitigation."""
GPU_PROBLEMS: Final[frozenset[NodeProblem]] = GPUS_UNUSABLE | {"gpu_slow"}
PROBLEMS_FROM = 1
"""First release that reads them: until `berth upgrade finish` none is reported or recorded."""


@event
class NodeProblemNoted(Event):
    """A problem of a node began, or is over; a node that joins anew has none.

    Nothing new is placed on a node with one of `NO_NEW_WORK`; its jobs go on. Problems of GPUs lead
    to a cordon, which `node.cordoned.v1` has.
    """

    TYPE: ClassVar[str] = "node.problem-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the incarnation that has it")
    problem: NodeProblem = Field(description="machine-readable")
    present: bool = Field(description="false: it is over")
    detail: str = Field("", description="the addresses or the folder, and figures")
    gpus: tuple[GpuNumber, ...] = Field(
        (), description="numbers of the GPUs that had it as it began; none: not known"
    )


@event
class NodeGpusNoted(Event):
    """Fail-slow noted that GPUs of a node failed or are slowed down, or that this is over.

    It restates `node.problem-noted.v1` of placement, so that the health of nodes follows from the
    ledger of fail-slow alone.
    """

    TYPE: ClassVar[str] = "node.gpus-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the incarnation that had it, or that ends it")
    problem: NodeProblem = Field(description="`gpu_fault` or `gpu_slow`")
    present: bool = Field(description="false: it is over")
    detail: str = Field("", description="the GPU, the value and the rule")
    gpus: tuple[GpuNumber, ...] = Field(
        (), description="numbers of the GPUs that had it as it began; none: not known"
    )


class ReportedProblem(Model):
    """A problem of a node that its executor sees, or that is over."""

    node_id: Name = Field(description="the node")
    incarnation: str = Field(max_length=64, description="the incarnation that has it")
    problem: NodeProblem = Field(description="machine-readable")
    present: bool = Field(description="false: it is over")
    detail: str = Field("", max_length=512, description="the addresses or the folder, and figures")
    gpus: tuple[GpuNumber, ...] = Field(
        (), max_length=MAX_GPUS, description="numbers of its GPUs that have it; none: not known"
    )


class NodeProblemsReported(Model):
    """Problems of nodes that began, or are over. A report that is lost is repeated.

    It is a message of its own, as a reader of an earlier release refuses a whole record for one
    kind of report that it does not know. Executors send none before `berth upgrade finish`.
    """

    TYPE: ClassVar[str] = "nodes.problems.v1"
    PARTS: ClassVar[str] = "problems"
    executor_id: str = Field(min_length=1, max_length=64, description="the executor process")
    problems: tuple[ReportedProblem, ...] = Field(max_length=4096, description="oldest first")
