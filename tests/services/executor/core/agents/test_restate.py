"""Reports of an agent become inputs of placement; those on workers of others are refused."""

from __future__ import annotations

import pytest

from services.executor.core.agents.restate import ForeignWorker, NotFolded, restate
from shared.contracts.agents import (
    ExitedReport,
    Incarnation,
    LeavingReport,
    NodeReport,
    ReadyReport,
    RefusedReport,
    RegistrationReport,
    StoppedReport,
    StuckReport,
    TermsAppliedReport,
)
from shared.contracts.failures import Failure
from shared.contracts.reports import (
    NodeLeaving,
    NodeRegistered,
    NodeTermsReported,
    Report,
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
    WorkerStuck,
)
from tests.services.executor.core.agents.history import UUID, allocation, running

MINE = allocation(1)
FAILURE = Failure(reason="walltime", detail="10 s", output=("a", "b"), permanent=True)
INCARNATION = Incarnation(generation=3, uuid=UUID)


def restated(report: NodeReport) -> Report | None:
    return restate(running().state, "n1", INCARNATION, report)


def test_a_registration_carries_the_incarnation_of_its_request() -> None:
    report = RegistrationReport(
        incarnation=INCARNATION,
        boot_id="b",
        pid_namespace="p",
        hardware="h",
        gpu_type="a100",
        gpus=8,
        unusable_gpus=(3,),
        cpus=96,
        mem_gib=512,
        labels={"zone": "a"},
        terms_id="1.0",
        fencing="advice",
        limits="v2",
    )
    registered = restated(report)
    assert isinstance(registered, NodeRegistered)
    assert (registered.incarnation, registered.generation) == (UUID, 3)
    assert (registered.backend, registered.unusable_gpus) == ("agent", (3,))
    assert (registered.boot_id, registered.fencing, registered.limits) == ("b", "advice", "v2")


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (LeavingReport(), NodeLeaving(node_id="n1", incarnation=UUID)),
        (
            TermsAppliedReport(terms_id="7.0", sent_boot_ms=5),
            NodeTermsReported(node_id="n1", incarnation=UUID, terms_id="7.0"),
        ),
        (
            ReadyReport(allocation_id=MINE, master_port=99),
            WorkerReady(allocation_id=MINE, job_id="j", master_port=99),
        ),
        (
            RefusedReport(allocation_id=MINE, failure=FAILURE),
            WorkerRefused(allocation_id=MINE, job_id="j", **FAILURE.model_dump()),
        ),
        (
            ExitedReport(allocation_id=MINE, exit_code=1, ran_ms=5, failure=FAILURE),
            WorkerExited(
                allocation_id=MINE, job_id="j", exit_code=1, ran_ms=5, **FAILURE.model_dump()
            ),
        ),
        (
            ExitedReport(allocation_id=MINE, exit_code=0),
            WorkerExited(allocation_id=MINE, job_id="j", exit_code=0),
        ),
        (
            StoppedReport(allocation_id=MINE, exit_code=143),
            WorkerStopped(allocation_id=MINE, job_id="j", exit_code=143),
        ),
        (
            StuckReport(allocation_id=MINE, detail="pid 7"),
            WorkerStuck(allocation_id=MINE, job_id="j", detail="pid 7"),
        ),
    ],
)
def test_each_report_has_its_input(report: NodeReport, expected: Report) -> None:
    assert restated(report) == expected


def test_a_worker_of_another_node_is_refused() -> None:
    with pytest.raises(ForeignWorker, match=allocation(0)):
        restated(StoppedReport(allocation_id=allocation(0)))


@pytest.mark.parametrize("name", ["2/5/0/1", "x", "1/x/0/0"])
def test_a_worker_of_another_ledger_needs_no_report(name: str) -> None:
    assert restated(StoppedReport(allocation_id=name)) is None


def test_a_released_worker_needs_no_report_and_an_unread_one_waits() -> None:
    assert restated(StoppedReport(allocation_id="1/2/0/0")) is None
    unread = StoppedReport(allocation_id="1/99/0/0")
    with pytest.raises(NotFolded):
        restated(unread)
    assert restate(running().state, "n1", INCARNATION, unread, is_complete=True) is None


def test_another_machine_under_the_name_of_the_node_ends_no_worker_of_the_first() -> None:
    other = Incarnation(generation=4, uuid="f" * 32)
    report = StoppedReport(allocation_id=MINE)
    assert restate(running().state, "n1", other, report) is None
    assert restated(report) is not None
