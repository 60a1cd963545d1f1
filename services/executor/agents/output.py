"""Lines and iteration times of a node's own workers, as messages about their jobs."""

from __future__ import annotations

from typing import Any

from services.executor.agents.lane import AgentLane
from services.executor.agents.refusal import Refused
from services.executor.core.agents.state import OutputSource
from shared.contracts.agents import Iterations, PrintedLines, Stream
from shared.contracts.iterations import IterationColumns
from shared.contracts.measurements import MeasuredNode, Measurements
from shared.contracts.node_registry import EnrolledNode
from shared.contracts.reports import IterationTimes, LogLines


def other_node(allocation_id: object) -> Refused:
    detail = f"allocation_id: {str(allocation_id)!r}; a worker of this node is allowed"
    return Refused(403, "other_node", detail)


def own_source(lane: AgentLane, node: EnrolledNode, allocation_id: str) -> OutputSource | None:
    """Return the source; None for an unknown worker. Raises a 403 for another node's."""
    worker = lane.state.workers.get(allocation_id)
    if worker is not None and worker.node_id != node.node_id:
        raise other_node(allocation_id)
    return lane.state.source_of(node.node_id, allocation_id)


def log_lines_of(source: OutputSource, printed: PrintedLines) -> LogLines:
    return LogLines(
        job_id=source.job_id,
        tenant=source.tenant,
        rank=source.rank,
        attempt=source.attempt,
        first_line=printed.first_line,
        lines=printed.lines,
        is_last=printed.is_last,
        open_line=printed.open_line,
    )


def columns_of(sample: Iterations) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in IterationColumns.model_fields}


def iteration_times(lane: AgentLane, node: EnrolledNode, message: Stream) -> list[IterationTimes]:
    return [
        IterationTimes(
            job_id=source.job_id,
            allocation_id=sample.allocation_id,
            node_id=node.node_id,
            rank=source.rank,
            series=source.series,
            **columns_of(sample),
        )
        for sample in message.iterations
        if (source := own_source(lane, node, sample.allocation_id)) is not None
    ]


def measured_nodes(
    lane: AgentLane, node: EnrolledNode, message: Stream
) -> tuple[MeasuredNode, ...]:
    """Return the measurements of the node, if it sends any."""
    if message.measured is None:
        return ()
    known = lane.state.nodes.get(node.node_id)
    fields = {name: getattr(message.measured, name) for name in Measurements.model_fields}
    gpu_type = known.gpu_type if known is not None else ""
    return (MeasuredNode(node_id=node.node_id, gpu_type=gpu_type, **fields),)
