"""The specification of an ended job in the ledger of admission."""

from __future__ import annotations

import asyncio

import pytest

from services.gateway.reads import recorded_specs
from services.gateway.reads.recorded_specs import (
    READS,
    TENANT_READS,
    SpecPosition,
    SpecReads,
    recorded_spec,
)
from services.gateway.responses.problem import ApiError
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.admission import ArrayAccepted, JobAdmitted, JobDeferred
from shared.contracts.array_programs import without_program
from shared.contracts.job_spec import JobSpec
from shared.ledger.partition import TP

AT = 1_700_000_000_000
"""The time of the first record less its step of 10 ms."""
SPEC = JobSpec(name="train", command=("python", "train.py"), env={"A": "1"})


def admitted(job: str, tenant: str = "ada", spec: JobSpec = SPEC) -> JobAdmitted:
    return JobAdmitted(job_id=job, tenant=tenant, submitted_at=1, spec=spec)


async def read(
    broker: MemoryBroker, subject: str, seq: int, tenant: str = "ada", at: int | None = None
) -> JobSpec | None:
    """Read what record `seq` or one before it has; `at` is that of the record if not given."""
    position = SpecPosition(1, seq, AT + 10 * seq if at is None else at)
    return await recorded_spec(MemoryLog(broker), position, subject, tenant)


async def test_a_spec_is_read_with_its_program_behind_records_that_do_not_count() -> None:
    broker = MemoryBroker()
    writer = LedgerWriter(broker, "admission", 1)
    writer.write([admitted("a")])
    writer.scribble(b"of a writer that lost a race")
    deferred = JobDeferred(job_id="b", tenant="ada", reason="quota", spec=SPEC)
    writer.write([JobDeferred(job_id="b", tenant="ada", reason="no_nodes"), deferred])
    writer.write([admitted("c", spec=JobSpec(name="c"))])
    assert await read(broker, "a", 1) == await read(broker, "b", 2) == SPEC
    assert await read(broker, "c", 2) is None, "it is recorded later than that"


async def test_the_spec_of_an_array_is_that_of_its_acceptance() -> None:
    broker = MemoryBroker()
    writer = LedgerWriter(broker, "admission", 1)
    array = ArrayAccepted(job_id="a", tenant="ada", array_size=2, spec=SPEC, program_once=True)
    writer.write([array])
    writer.write([admitted("a.0", spec=without_program(SPEC))])
    assert await read(broker, "a", 2) == SPEC


@pytest.mark.parametrize("between", [50, 70, 700, 6000])
async def test_the_acceptance_of_an_array_is_read_however_long_before_its_first_job(
    between: int,
) -> None:
    broker = MemoryBroker()
    writer = LedgerWriter(broker, "admission", 1)
    for _ in range(300):
        writer.write([])
        writer.scribble(b"of a writer that lost a race")
    writer.write([ArrayAccepted(job_id="a", tenant="ada", array_size=2, spec=SPEC)])
    accepted_at = writer.at
    for _ in range(between):
        writer.write([])
    writer.write([admitted("a.0", spec=without_program(SPEC))])
    assert await read(broker, "a", 302 + between, at=accepted_at) == SPEC


async def test_an_acceptance_with_the_time_of_a_stepped_clock_is_read_near_its_first_job() -> None:
    broker = MemoryBroker()
    writer = LedgerWriter(broker, "admission", 1)
    for _ in range(500):
        writer.write([])
    writer.write([ArrayAccepted(job_id="a", tenant="ada", array_size=2, spec=SPEC)], at=AT - 9)
    writer.write([admitted("a.0", spec=without_program(SPEC))])
    assert await read(broker, "a", 502, at=AT - 9) == SPEC


async def test_a_broker_that_delivers_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(MemoryLog):
        async def end(self, tp: TP) -> int:
            return await super().end(tp) + 1

    monkeypatch.setattr(recorded_specs, "POLL_S", 0.001)
    broker = MemoryBroker()
    LedgerWriter(broker, "admission", 1).write([admitted("a")])
    with pytest.raises(TimeoutError, match=r"admission-1 ends at 2, and delivers nothing from 1"):
        await recorded_spec(Ahead(broker), SpecPosition(1, 2, AT + 20), "b", "ada")


async def test_a_gateway_reads_a_few_at_once_and_leaves_some_for_other_tenants() -> None:
    broker = MemoryBroker()
    LedgerWriter(broker, "admission", 1).write([admitted("a")])
    reads, position = SpecReads(lambda: MemoryLog(broker)), SpecPosition(1, 1, AT + 10)

    async def statuses(*tenants: str) -> list[int]:
        tasks = [reads.read(position, "a", tenant) for tenant in tenants]
        done = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [error for error in done if isinstance(error, ApiError)]
        assert all(error.headers["Retry-After"] == "1" for error in refused)
        return [error.status for error in refused]

    assert await statuses(*["ada"] * (TENANT_READS + 1), "bob") == [429]
    assert await statuses(*(f"t{number}" for number in range(READS + 2))) == [429, 429]
    assert await reads.read(position, "a", "ada") == SPEC, "places are given back"


async def test_another_tenants_spec_is_not_read() -> None:
    broker = MemoryBroker()
    LedgerWriter(broker, "admission", 1).write([admitted("a", "bob")])
    assert await read(broker, "a", 1) is None


async def test_what_was_trimmed_is_not_recorded_any_more() -> None:
    broker = MemoryBroker()
    writer = LedgerWriter(broker, "admission", 1)
    writer.write([admitted("a")])
    writer.write([admitted("b")])
    broker.trim(TP("admission", 1), 1)
    assert await read(broker, "a", 1) is None
    assert await read(broker, "b", 2) == SPEC
