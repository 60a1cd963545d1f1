"""The failed attempts and the last checkpoint that a job takes along when it is transferred."""

from __future__ import annotations

from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from shared.contracts.checkpoint import speed, spread_of


def take_over(job: Job) -> None:
    """Let the first start in this pool go on from where the job came to in others."""
    before = job.spec.transferred
    if before is not None:
        job.failures = before.failures
        job.resumes, job.done_s = before.resumes, before.done_s


def save_work(pool: Pool, job: Job, at: int) -> None:
    """Add the work that a stop at `at` ms keeps, as virtual nodes count it, of a job that may be
    transferred, or whose pool has a scheduler, which goes by what is left.
    """
    if not job.started_at or (job.spec.pools is None and not pool.is_scheduled):
        return
    worked_ms = max(0, job.ran_ms(at) - job.paid_ms(pool.time_scale))
    kept_s = (worked_ms - job.lost_ms(at, pool.time_scale)) / 1000 * pool.time_scale
    nodes = [pool.board.nodes[node_id] for node_id in job.nodes if node_id in pool.board.nodes]
    racks = {node.node_id: node.rack for node in nodes}
    spread = spread_of(racks, racks)
    gpu_types = {node.kind.gpu_type for node in nodes}
    job.done_s += kept_s * speed(job.spec, len(job.allocations), gpu_types, spread)
