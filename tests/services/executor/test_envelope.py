"""Messages of an executor are CloudEvents that name their sender."""

from __future__ import annotations

from services.executor.envelope import wrap_message
from shared.contracts.reports import ExecutorReported, LogLines
from shared.ledger import cloudevents

LINES = LogLines(job_id="j1", tenant="ada", attempt=1, rank=0, first_line=0, lines=("epoch 1",))
REPORT = ExecutorReported(executor_id="e1", reports=())


def test_a_record_names_its_executor_and_its_pool() -> None:
    event = cloudevents.decode(wrap_message("e1", REPORT, pool="demo"))
    assert (event.source, event.type, event.pool, event.tenant) == (
        "/berth/executor/e1",
        ExecutorReported.TYPE,
        "demo",
        "",
    )
    assert ExecutorReported.model_validate_json(event.body) == REPORT


def test_output_names_the_tenant_that_may_read_it() -> None:
    assert cloudevents.decode(wrap_message("e1", LINES, tenant="ada")).tenant == "ada"


def test_each_record_has_an_id_of_its_own() -> None:
    assert len({cloudevents.decode(wrap_message("e1", REPORT)).id for _ in range(3)}) == 3
