"""Any service may be killed at any moment, and Postgres too: nothing is lost or done twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from infra.supervisor import supervise
from infra.supervisor.stack import SERVICES
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.tail import LedgerTail
from shared.contracts.identity import derive_job_id
from tests.e2e.stand import POOL, Json, Stand, a_stand, a_submission, eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.stack, pytest.mark.parts]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand() as running:
        yield running


def kill(stand: Stand, name: str) -> None:
    """Kill a service; return once the supervisor has started it again, ready or not."""
    before = eventually(lambda: supervise.pid_of(stand.stack.data_dir, name))
    os.kill(before, signal.SIGKILL)
    eventually(lambda: supervise.pid_of(stand.stack.data_dir, name) not in (0, before))


def publish(stand: Stand, run: str, jobs: int) -> list[str]:
    """Publish short jobs, every fifth a gang of two, spread over the ingress; return their ids."""
    keys = [f"{run}-{number}" for number in range(jobs)]
    for lane in range(stand.stack.partitions):
        stand.publish(
            "submissions.ada",
            lane,
            *(
                a_submission(
                    key,
                    gang={"workers": 2 if number % 5 == 0 else 1},
                    simulated={"duration_s": 0.05 + number % 10 * 0.1},
                )
                for number, key in enumerate(keys)
                if number % stand.stack.partitions == lane
            ),
        )
    return [derive_job_id("ada", POOL, key) for key in keys]


def test_every_service_is_killed_once_and_every_job_ends(stand: Stand) -> None:
    jobs: list[str] = []
    share = -(-200 // len(SERVICES))
    for service in SERVICES:
        jobs += publish(stand, f"kill-{service.name}", share)
        kill(stand, service.name)
    supervise.wait_ready(
        stand.stack.data_dir, tuple(service.name for service in SERVICES), PATIENCE_S
    )
    phases = [stand.ended(job_id)["phase"] for job_id in jobs]
    assert phases == ["succeeded"] * len(jobs)
    assert stand.verify().violations == []


def test_without_postgres_jobs_are_submitted_placed_and_ended(stand: Stand) -> None:
    before = publish(stand, "before", 20)
    problem, ticket = asyncio.run(without_postgres(stand))
    assert problem["reason"] == "reads_unavailable"
    eventually(lambda: stand.call("GET", "/v1/jobs")[0] == 200)
    after = publish(stand, "after", 20)
    for job_id in (*before, ticket["job_id"], *after):
        assert stand.ended(job_id)["phase"] == "succeeded"
    assert stand.verify().violations == []


async def without_postgres(stand: Stand) -> tuple[Json, Json]:
    """Kill Postgres whenever it runs, until a job submitted meanwhile has succeeded."""
    kill_postgres(stand)
    problem = await asyncio.to_thread(eventually, lambda: refused_read(stand))
    ticket = stand.submit(key="meanwhile")
    log = KafkaLog(stand.stack.connection("operator"), client="e2e")
    tail = LedgerTail(log, {"placement": [stand.lane]})
    await tail.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while ("job.succeeded.v1", ticket["job_id"]) not in await facts(tail):
                kill_postgres(stand)
    finally:
        await tail.stop()
    return problem, ticket


async def facts(tail: LedgerTail) -> set[tuple[str, str]]:
    return {(raw.type, raw.subject) for record in await tail.poll(0.1) for raw in record.raw()}


def kill_postgres(stand: Stand) -> None:
    if pid := supervise.pid_of(stand.stack.data_dir, "postgres"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def refused_read(stand: Stand) -> Json | None:
    kill_postgres(stand)
    status, problem = stand.call("GET", "/v1/jobs", once=True)
    return problem if status == 503 else None
