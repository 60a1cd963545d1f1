"""A submission learns when it will start: from one read a second, and it never waits long."""

from __future__ import annotations

import asyncpg
import pytest

from services.gateway.reads.database import Database
from services.gateway.reads.queue_starts import Kind, QueueStarts, interval_of
from shared.contracts.registry import Bearer
from shared.projections.database import connect

ADA = Bearer("ada-key", "submitter", "ada")
KIND = Kind("ada", 0, 2.0)
ESTIMATE = '{"p10_at": 10, "p50_at": 20, "p90_at": 30, "coverage": 0.8, "samples": 7}'

FILL = """
INSERT INTO job_placement (job_id, partition, tenant, attempt, phase, enqueued_at, waiting_since,
    placed_at, started_at, ended_at, reason, held_reason, short_gpus, preemptions, gpu_ms, ran_ms,
    nodes)
VALUES ('j1', 0, 'ada', 1, 'waiting', 1, 1, 0, 0, 0, '', '', 0, 0, 0, 0, '[]');
INSERT INTO job_admission (job_id, partition, tenant, name, user_id, priority_class, workers, gpus,
    spec, state, reason, detail, submitted_at, decided_at, cancel_requested_at, traceparent)
VALUES ('j1', 0, 'ada', 'n', '', 'normal', 1, 2, '{}', 'admitted', '', '', 1, 1, 0, '');
INSERT INTO job_event (ledger, partition, seq, idx, at, type, job_id, tenant, data, cause,
    traceparent)
VALUES ('priority', 0, 1, 0, 5, 'job.start-estimated.v1', 'j1', 'ada', 'ESTIMATE', '', '');
"""


@pytest.fixture
async def estimated(database: str) -> str:
    """A database with one waiting job of two GPUs, and its estimate."""
    conn: asyncpg.Connection = await connect(database)
    await conn.execute("SET search_path TO berth")
    await conn.execute(FILL.replace("ESTIMATE", ESTIMATE))
    await conn.close()
    return database


@pytest.mark.parametrize(
    ("kind", "p50_at"),
    [(KIND, 20), (KIND._replace(gpus=1.0), None), (KIND._replace(tenant="bob"), None)],
)
async def test_the_estimate_is_that_of_a_job_alike(
    estimated: str, kind: Kind, p50_at: int | None
) -> None:
    reads = Database(estimated)
    starts = QueueStarts(reads)
    task = starts.read(ADA, kind)
    assert task is not None
    start = await task
    assert (start and start["p50_at"]) == p50_at
    assert await starts.answer(task) == start
    assert starts.read(ADA, kind) is task, "read once for all that come within a second"
    await reads.stop()


async def test_nothing_waits_for_read_models_that_are_away() -> None:
    starts = QueueStarts(Database(""))
    assert await starts.answer(starts.read(ADA, KIND)) is None
    assert starts.read(ADA, KIND) is None


def test_an_interval_without_a_track_record_says_so() -> None:
    interval = interval_of({"p10_at": 1, "p50_at": 2, "p90_at": 3, "samples": 0}, 4, "queue")
    assert (interval["coverage"], interval["samples"], interval["at"]) == (None, 0, 4)
