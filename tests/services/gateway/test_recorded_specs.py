"""The specification of an ended job in the ledger of admission."""

from __future__ import annotations

from services.gateway.recorded_specs import recorded_spec
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.contracts.admission import ArrayAccepted, JobAdmitted, JobDeferred
from shared.contracts.array_programs import without_program
from shared.contracts.job_spec import JobSpec
from shared.ledger.partition import TP
from shared.testing.ledgers import LedgerWriter

SPEC = JobSpec(name="train", command=("python", "train.py"), env={"A": "1"})


def admitted(job: str, tenant: str = "ada", spec: JobSpec = SPEC) -> JobAdmitted:
    return JobAdmitted(job_id=job, tenant=tenant, submitted_at=1, spec=spec)


async def read(broker: MemoryBroker, subject: str, seq: int, tenant: str = "ada") -> JobSpec | None:
    return await recorded_spec(MemoryLog(broker), 1, subject, tenant, seq)


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
