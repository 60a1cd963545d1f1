"""The restart of a large executor: one input leads to more facts than one record may hold."""

from __future__ import annotations

from shared.bus.inputs.gather import Batch
from shared.bus.inputs.inbox import PendingRecord
from shared.bus.lane.draft import MAX_BYTES, Draft, draft_facts
from shared.contracts.reports import ExecutorReported
from shared.ledger.partition import TP
from tests.services.placement.core.lane import job, lane, registered

NODES = [f"n{number:03}" for number in range(128)]
JOBS_PER_NODE = 8
UNIT_BYTES = 16 * 1024
"""More than the facts of one node."""


def test_a_restart_of_128_nodes_with_8_jobs_each_is_decided_in_records_that_fit() -> None:
    pool = lane(*NODES, gpus=JOBS_PER_NODE)
    jobs = [f"j{number}" for number in range(len(NODES) * JOBS_PER_NODE)]
    for begin in range(0, len(jobs), 64):
        pool.run(*(job(job_id) for job_id in jobs[begin : begin + 64]), after_ms=1000)
    assert all(pool.job(job_id).phase == "running" for job_id in jobs)
    again = tuple(registered(name, JOBS_PER_NODE, "i2") for name in NODES)
    inputs = (pool.an("reports", ExecutorReported(executor_id="e1", reports=again)),)
    record = PendingRecord("reports-0", 0, 1, inputs, 10, 0)
    sizes: list[int] = []
    used: Batch | None = Batch([], [])
    while used is not None:
        draft = Draft(pool.now + 1000)
        batch = Batch([], [record])
        draft_facts(pool.decider, pool.state, batch, draft, TP("placement", 0), len(sizes))
        sizes.append(draft.size)
        used = draft.used
    assert sum(sizes) > 2**20, "a record of all facts would be too large for a broker"
    assert max(sizes) < MAX_BYTES + UNIT_BYTES
    assert {node.incarnation for node in pool.state.board.nodes.values()} == {"i2"}
    assert len(pool.state.jobs) == len(jobs)
