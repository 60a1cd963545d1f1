"""A whole executor: from the placement ledger to reports, on the in-memory twin."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.executor.virtual.server import VirtualServer
from shared.bus.clock import boot_ms
from shared.bus.hosting import probe
from shared.bus.logs.log import Headers
from shared.bus.logs.memory import MemoryLog
from shared.contracts.attempts import AllocationReleased
from shared.contracts.job_spec import JobSpec
from shared.contracts.nodes import NodeLost
from shared.contracts.reports import (
    Heartbeats,
    NodeLeaving,
    NodeRegistered,
    TelemetryReported,
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
)
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from tests.services.executor.facts import a_node, a_spec, enqueued, placed, started
from tests.services.executor.virtual.twin import Twin

VIRTUAL = a_node("n1", gpus=8)
SECOND = a_node("n2", gpus=2)


async def run_job(twin: Twin, job: str, spec: JobSpec, *on: tuple[str, int]) -> str:
    """Write placement's events up to the start, and return the id prefix of the allocations."""
    ready = len(twin.reports(WorkerReady))
    twin.write(enqueued(job, spec))
    prefix = twin.write(placed(job, *on))
    await twin.wait_for(WorkerReady, ready + len(on))
    twin.write(started(job))
    return prefix


async def test_the_lag_behind_each_ledger_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "LOOK_EVERY_S", 0.001)
    twin = Twin(tmp_path, VIRTUAL)
    await twin.serving()
    assert twin.executor is not None

    def lag(topic: str) -> float | None:
        labels = {"topic": topic, "partition": "0"}
        return twin.metrics.registry.get_sample_value("berth_consumer_lag_records", labels)

    await twin.until(lambda: lag("placement") == lag("access") == 0)
    unread = (await twin.executor.behind())[TP("placement", 0)]
    twin.write(enqueued("j1", a_spec(30)))
    assert (await twin.executor.behind())[TP("placement", 0)] == unread + 1
    await twin.until(lambda: lag("placement") == 0)
    await twin.leave()
    assert await twin.executor.behind() == {}


async def test_a_virtual_job_goes_from_its_place_to_its_exit(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL, time_scale=1000)
    await twin.serving()
    prefix = await run_job(twin, "j1", a_spec(30), ("n1", 0), ("n1", 1))
    exits = await twin.wait_for(WorkerExited, 2)
    assert [e.allocation_id for e in exits] == [f"{prefix}/0", f"{prefix}/1"]
    assert all(e.exit_code == 0 and e.ran_ms == 30 for e in exits)
    await twin.leave()
    assert [r.node_id for r in twin.reports(NodeLeaving)] == ["n1"]


async def test_a_virtual_job_ends_at_its_walltime(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL, time_scale=1000)
    await twin.serving()
    await run_job(twin, "j1", a_spec(1e6).model_copy(update={"walltime_s": 20.0}), ("n1", 0))
    [end] = await twin.wait_for(WorkerExited, 1)
    assert (end.reason, end.exit_code, end.ran_ms) == ("walltime", 143, 20)
    assert end.detail == "the walltime of 20 s is over"
    await twin.leave()


async def test_reports_of_one_moment_lie_in_one_record(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL)
    await twin.serving()
    before = len(twin.records())
    for job in range(8):
        twin.write(enqueued(f"j{job}"), placed(f"j{job}", ("n1", job)))
    await twin.wait_for(WorkerReady, 8)
    assert len(twin.records()) - before <= 2
    await twin.leave()


class ShakyLog(MemoryLog):
    """Loses the first append, and the acknowledgement of the second."""

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        self.tries = getattr(self, "tries", 0) + 1
        if self.tries == 1:
            raise OutcomeUnknown("the request is lost")
        offset = await super().append(tp, value, key=key, headers=headers)
        if self.tries == 2:
            raise OutcomeUnknown("the answer is lost")
        return offset


async def test_a_report_is_sent_again_until_it_is_acknowledged(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL)
    twin.connect = lambda: ShakyLog(twin.broker)
    await twin.serving()
    await twin.until(lambda: len(twin.records()) == 2)
    first, second = twin.broker.entries(TP("reports", 0))
    assert first.value == second.value
    twin.admit(twin.reports(NodeRegistered)[:1])
    await run_job(twin, "j1", a_spec(0), ("n1", 0))
    assert len(await twin.wait_for(WorkerExited)) == 1
    await twin.leave()


async def test_unaccepted_records_start_nothing(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL)
    await twin.serving()
    twin.write(enqueued())
    accepted = twin.broker.entries(TP("placement", 0))[-1].value
    assert accepted is not None
    twin.placement.scribble(accepted)
    twin.placement.scribble(b"rubbish")
    twin.write(placed())
    assert len(await twin.wait_for(WorkerReady)) == 1
    await twin.leave()


async def test_heartbeats_name_the_nodes_and_their_incarnation(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL)
    await twin.serving()
    await twin.until(lambda: bool(twin.messages("heartbeats", Heartbeats)))
    (registered,) = twin.reports(NodeRegistered)
    (alive,) = twin.messages("heartbeats", Heartbeats)[0].nodes.values()
    assert alive.incarnation == registered.incarnation
    assert alive.sent_boot_ms is not None and 0 < alive.sent_boot_ms <= boot_ms()
    await twin.leave()


async def test_a_slow_node_shows_in_the_telemetry_of_its_gang(tmp_path: Path) -> None:
    other = a_node("n2")
    twin = Twin(tmp_path, VIRTUAL, other, time_scale=100)
    await twin.serving(slow="n2:3.5")
    await run_job(twin, "j1", a_spec(1e6), ("n1", 0), ("n2", 0))
    await twin.until(lambda: bool(twin.messages("telemetry", TelemetryReported)))
    times = twin.messages("telemetry", TelemetryReported)[0].times
    by_node = {t.node_id: t.own_s[0] or 0.0 for t in times}
    assert by_node["n2"] / by_node["n1"] > 3
    await twin.leave()


async def test_nodes_wait_until_the_pool_allows_their_backend(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL, backends=("agent",))
    twin.access.write([twin.pool])
    twin.start()
    executor = twin.executor
    assert isinstance(executor, VirtualServer)
    await twin.until(lambda: "does not allow" in str(executor.health().get("reason")))
    assert twin.reports(NodeRegistered) == []
    twin.access.write([twin.pool.model_copy(update={"backends": ("virtual", "agent")})])
    twin.admit(await twin.wait_for(NodeRegistered))
    await twin.until(lambda: executor.health() == {"ready": True})
    await twin.leave()


async def test_a_busy_gpu_is_refused(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL)
    await twin.serving()
    await run_job(twin, "j1", a_spec(1e6), ("n1", 0))
    twin.write(enqueued("j2"), placed("j2", ("n1", 0)))
    (refused,) = await twin.wait_for(WorkerRefused)
    assert refused.job_id == "j2" and refused.reason.startswith("gpu_busy")
    await twin.leave()


async def test_a_clean_stop_reports_leaving_and_then_each_end(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL, SECOND)
    await twin.serving()
    await run_job(twin, "j1", a_spec(1e6), ("n1", 0))
    await run_job(twin, "j2", a_spec(1e6), ("n2", 0))
    await twin.leave()
    reports = [r for record in twin.records() for r in record.reports][-4:]
    assert [type(r) for r in reports[:2]] == [NodeLeaving, NodeLeaving]
    assert {r.job_id for r in reports[2:] if isinstance(r, WorkerStopped)} == {"j1", "j2"}


async def test_after_a_crash_the_next_executor_reports_the_workers_that_were_left(
    tmp_path: Path,
) -> None:
    twin = Twin(tmp_path, VIRTUAL, SECOND)
    await twin.serving()
    first = await run_job(twin, "j1", a_spec(1e6), ("n1", 0))
    second = await run_job(twin, "j2", a_spec(1e6), ("n2", 0))
    await twin.crash()
    await twin.serving()
    stopped = await twin.wait_for(WorkerStopped, 2)
    assert {s.allocation_id for s in stopped} == {f"{first}/0", f"{second}/0"}
    assert len({r.incarnation for r in twin.reports(NodeRegistered)}) == 2
    await run_job(twin, "j3", a_spec(0.001), ("n2", 0))
    assert (await twin.wait_for(WorkerExited))[-1].job_id == "j3"
    await twin.leave()


async def test_a_restart_goes_on_from_its_snapshot_and_an_older_ledger_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.executor.pool_ledger.SNAPSHOT_EVERY_S", 0.05)
    monkeypatch.setattr("services.executor.pool_ledger.SNAPSHOT_RECORDS", 3)
    twin = Twin(tmp_path, VIRTUAL)
    await twin.serving()
    prefix = await run_job(twin, "j1", a_spec(0), ("n1", 0))
    await twin.wait_for(WorkerExited)
    twin.write(
        AllocationReleased(
            job_id="j1", attempt=1, allocation_id=f"{prefix}/0", node_id="n1", reason="exited"
        )
    )
    twin.write(enqueued("j2", a_spec(0)))
    await twin.until(lambda: bool(list(tmp_path.rglob("*.snapshot"))))
    await twin.crash()
    await twin.serving()
    await twin.until(lambda: twin.executor is not None and twin.executor.health()["ready"] is True)
    twin.write(placed("j2", ("n1", 0)))
    ready = await twin.wait_for(WorkerReady, 2)
    assert ready[-1].job_id == "j2"
    assert twin.reports(WorkerStopped) == []
    await twin.leave()


class UnansweredLog(MemoryLog):
    """A log whose requests for ends fail while `unanswered` is set."""

    unanswered = False

    async def end(self, tp: TP) -> int:
        if type(self).unanswered:
            raise OutcomeUnknown("no answer")
        return await super().end(tp)


async def test_an_executor_that_cannot_read_the_ledger_for_half_a_lease_stops_its_workers(
    tmp_path: Path,
) -> None:
    class Unanswered(UnansweredLog):
        pass

    twin = Twin(tmp_path, VIRTUAL, lease_s=12.0)
    twin.connect = lambda: Unanswered(twin.broker)
    await twin.serving()
    await run_job(twin, "j1", a_spec(1e6), ("n1", 0))
    await asyncio.sleep(6.2)
    assert len(twin.reports(NodeRegistered)) == 1
    Unanswered.unanswered = True
    executor = twin.executor
    assert isinstance(executor, VirtualServer)
    await twin.until(lambda: "cannot be read" in str(executor.health().get("reason")))
    first, second = await twin.wait_for(NodeRegistered, 2)
    (lane,) = executor._lanes.values()
    assert lane.performer.state.living_workers() == []
    assert first.incarnation != second.incarnation
    Unanswered.unanswered = False
    twin.admit([second])
    await twin.until(lambda: executor.health() == {"ready": True})
    assert len(twin.reports(NodeRegistered)) == 2
    await twin.leave()


class UnheardLog(MemoryLog):
    """A log of which no append of a heartbeat is acknowledged once `unheard` is set."""

    unheard = False

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        if tp.topic == "heartbeats" and type(self).unheard:
            raise OutcomeUnknown("not acknowledged")
        return await super().append(tp, value, key=key, headers=headers)


async def test_workers_stop_a_lease_after_the_last_acknowledged_heartbeat(tmp_path: Path) -> None:
    """The ledger can be read, so that nothing but the lease on heartbeats can stop them."""

    class Unheard(UnheardLog):
        pass

    twin = Twin(tmp_path, VIRTUAL, lease_s=8.0)
    twin.connect = lambda: Unheard(twin.broker)
    await twin.serving()
    await run_job(twin, "j1", a_spec(1e6), ("n1", 0))
    Unheard.unheard = True
    first, second = await twin.wait_for(NodeRegistered, 2)
    executor = twin.executor
    assert isinstance(executor, VirtualServer)
    (lane,) = executor._lanes.values()
    assert lane.performer.state.living_workers() == []
    assert (first.generation, second.generation) == (1, 2)
    assert first.incarnation != second.incarnation and first.boot_id == second.boot_id
    Unheard.unheard = False
    twin.admit([second])
    await twin.until(lambda: executor.health() == {"ready": True})
    await twin.leave()


async def test_a_node_that_was_declared_lost_joins_anew(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL)
    await twin.serving()
    await run_job(twin, "j1", a_spec(1e6), ("n1", 0))
    (registered,) = twin.reports(NodeRegistered)
    twin.write(NodeLost(node_id="n1", incarnation=registered.incarnation, reason="silent"))
    first, second = await twin.wait_for(NodeRegistered, 2)
    assert first.incarnation != second.incarnation
    await twin.leave()


async def test_an_executor_waits_for_its_pool_and_can_be_stopped_meanwhile(tmp_path: Path) -> None:
    twin = Twin(tmp_path, VIRTUAL)
    twin.start()
    await twin.until(
        lambda: (
            twin.executor is not None and "unknown yet" in str(twin.executor.health().get("reason"))
        )
    )
    await twin.leave()
