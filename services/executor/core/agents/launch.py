"""Everything that a node needs to run one worker, from the placement of its gang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from services.executor.core.agents.state import AgentJob, AgentPool
from shared.contracts.agents import Launch
from shared.contracts.construct import construct
from shared.contracts.placement import Allocation, JobPlaced


def launches(
    state: AgentPool, placed: JobPlaced, job: AgentJob
) -> Iterator[tuple[Allocation, Launch]]:
    """Yield the allocations of a gang on nodes with an agent; secrets are not resolved yet.

    Nodes are numbered in the order of their lowest rank, workers of one node by their rank.
    """
    gang = sorted(placed.allocations, key=lambda allocation: allocation.rank)
    nodes = list(dict.fromkeys(allocation.node_id for allocation in gang))
    on_node = Counter(allocation.node_id for allocation in gang)
    seen = Counter[str]()
    master = state.addresses.get(gang[0].node_id, "127.0.0.1")
    spec = job.spec
    walltime_s = None if spec.walltime_s is None else spec.walltime_s / state.time_scale
    for allocation in gang:
        local_rank = seen[allocation.node_id]
        seen[allocation.node_id] += 1
        if allocation.node_id not in state.nodes:
            continue
        yield (
            allocation,
            construct(
                Launch,
                job_id=placed.job_id,
                first_job_id=spec.transferred.first_job_id if spec.transferred else "",
                tenant=placed.tenant,
                user=spec.user,
                attempt=placed.attempt,
                array_index=None if job.array_index is None else job.array_index + spec.array_first,
                rank=allocation.rank,
                world_size=len(gang),
                local_rank=local_rank,
                local_world_size=on_node[allocation.node_id],
                node_rank=nodes.index(allocation.node_id),
                nodes=len(nodes),
                gpus=allocation.gpus,
                gpu_milli=allocation.gpu_milli,
                cpus=allocation.cpus,
                mem_gib=allocation.mem_gib,
                command=spec.command,
                image=spec.image or "",
                workdir=spec.workdir or "",
                bundle=spec.bundle or "",
                env=dict(spec.env),
                master_addr=master,
                grace_s=spec.grace_s,
                walltime_s=walltime_s,
                starts_alone=len(gang) == 1,
            ),
        )
