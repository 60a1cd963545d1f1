"""A run goes on behind the mark of the last green one, and misses nothing that came since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shared.bus.clock import now_ms
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.job_commands import SubmitJob
from shared.contracts.placement import JobHeld
from shared.contracts.topics import TOPICS
from shared.ledger.partition import TP
from shared.projections.database import connect
from shared.verify import marks
from shared.verify import run as verify_run
from shared.verify.marks import NO_MARK, Marks
from shared.verify.report import VerifyReport
from shared.verify.row_store import RowStore
from shared.verify.run import verify
from tests.shared.verify.test_run import (
    DAMAGE,
    SPEC,
    World,
    installation,
    no_answer,
    other_bytes_in_dead,
    two_ends,
)

Damage = Callable[[World], None]
COMPARED_ONCE = (other_bytes_in_dead,)
"""Damage of bytes that a green run has compared: only a whole run compares them again."""
AT_A_MARK = [(damage, detail) for damage, detail in DAMAGE if damage not in COMPARED_ONCE]


def name_of(damage: object) -> str:
    return getattr(damage, "__name__", "")


async def run(
    world: World, folder: Path, database: str = "", *, whole: bool = False
) -> VerifyReport:
    """Publish, project and verify what is new; a green run leaves a mark in the folder."""
    await world.publish()
    if not database:
        return await verify(installation(world.broker), None, marks=Marks(folder), whole=whole)
    await world.project(database)
    conn = await connect(database)
    try:
        return await verify(installation(world.broker), conn, marks=Marks(folder), whole=whole)
    finally:
        await conn.close()


@pytest.mark.parametrize(("damage", "detail"), AT_A_MARK, ids=name_of)
async def test_each_damage_behind_a_mark_is_reported_until_it_ends(
    tmp_path: Path, damage: Damage, detail: str
) -> None:
    world = World()
    first = await run(world, tmp_path)
    assert (first.violations, first.since_ms) == ([], 0)
    damage(world)
    for _ in range(2):
        report = await run(world, tmp_path)
        assert report.since_ms
        assert any(detail in violation.detail for violation in report.violations)


@pytest.mark.parametrize("damage", COMPARED_ONCE, ids=name_of)
async def test_bytes_that_were_compared_are_compared_again_by_a_whole_run(
    tmp_path: Path, damage: Damage
) -> None:
    world = World()
    await run(world, tmp_path)
    damage(world)
    assert (await run(world, tmp_path)).violations == []
    assert len((await run(world, tmp_path, whole=True)).violations) == 1


async def test_a_run_behind_a_mark_reads_what_came_since_and_all_rows(
    tmp_path: Path, database: str
) -> None:
    world = World()
    first = await run(world, tmp_path, database)
    position = world.run("j2")
    second = await run(world, tmp_path, database)
    world.release("j2", position)
    world.succeed("j2")
    third = await run(world, tmp_path, database)
    assert first.violations == second.violations == third.violations == []
    assert first.counts["records"] > 10
    assert second.counts["records"] == third.counts["records"] == 2
    assert (first.counts["commands"], third.counts["commands"]) == (3, 0)
    conn = await connect(database)
    await conn.execute("UPDATE job_placement SET gpu_ms = 7 WHERE job_id = 'j1'")
    await conn.close()
    changed = await run(world, tmp_path, database)
    assert [v.position for v in changed.violations] == ["job_placement j1"]


async def test_histories_are_counted_over_all_runs(tmp_path: Path, database: str) -> None:
    world = World()
    await run(world, tmp_path, database)
    world.release("j2", world.run("j2"))
    assert (await run(world, tmp_path, database)).violations == []
    conn = await connect(database)
    await conn.execute("DELETE FROM job_event WHERE job_id = 'j1'")
    await conn.close()
    world.succeed("j2")
    report = await run(world, tmp_path, database)
    assert {v.position for v in report.violations} >= {"job_event placement-0"}
    assert {v.rule for v in report.violations} == {"histories of jobs have every event"}


async def test_rows_that_are_older_than_the_mark_are_compared_by_a_whole_run(
    tmp_path: Path, database: str
) -> None:
    world = World()
    await run(world, tmp_path, database)
    conn = await connect(database)
    await conn.execute("DELETE FROM cursor WHERE ledger = 'placement'")
    report = await verify(installation(world.broker), conn, marks=Marks(tmp_path))
    await conn.close()
    assert report.since_ms == 0


async def test_rows_are_compared_up_to_the_projector_and_the_rest_by_the_next_run(
    tmp_path: Path, database: str
) -> None:
    world = World()
    await run(world, tmp_path, database)
    position = world.run("j2")
    await world.publish()
    conn = await connect(database)
    behind = await verify(installation(world.broker), conn, marks=Marks(tmp_path))
    await conn.close()
    world.release("j2", position)
    world.succeed("j2")
    caught_up = await run(world, tmp_path, database)
    assert behind.violations == caught_up.violations == []
    assert (behind.counts["records"], caught_up.counts["records"]) == (2, 4)


def submit(world: World, command_id: str) -> None:
    job = SubmitJob(job_id=command_id, tenant="red", pool="p", idempotency_key="9", spec=SPEC)
    world.command(command_id, job)


async def test_a_command_that_was_in_transit_at_the_mark_needs_its_answer(tmp_path: Path) -> None:
    world = World()
    submit(world, "c7")
    submit(world, "c8")
    assert (await run(world, tmp_path)).violations == []
    world.admission.inputs = {"commands-0": 6}
    world.admission.write([CommandAccepted(command_id="c7", command_type="job.submit.v1")])
    report = await run(world, tmp_path)
    assert [v.detail for v in report.violations] == ["job.submit.v1 c8: no answer"]


async def test_a_command_that_was_sent_again_has_its_answer(tmp_path: Path) -> None:
    world = World()
    await run(world, tmp_path)
    submit(world, "c1")
    world.admission.inputs = {"commands-0": 5}
    world.admission.write([])
    assert (await run(world, tmp_path)).violations == []


async def test_what_was_not_published_at_the_mark_must_be_published_since(tmp_path: Path) -> None:
    """The record comes between the two passes, when its event has not to be published yet."""
    world = World()
    await world.publish()
    held = JobHeld(job_id="j2", tenant="red", reason="no_capacity")

    def add_record(line: str) -> None:
        if line == "checking every event":
            world.placement.write([held])

    log = installation(world.broker)
    assert (await verify(log, None, add_record, marks=Marks(tmp_path))).violations == []
    red = await verify(installation(world.broker), None, marks=Marks(tmp_path))
    assert [v.detail for v in red.violations] == ["job.held.v1 is not in events"]
    assert (await run(world, tmp_path)).violations == []


async def test_a_ledger_that_ends_before_the_mark_is_reported(tmp_path: Path) -> None:
    world = World()
    await run(world, tmp_path)
    world.broker.entries(TP("throttle", 0)).clear()
    report = await run(world, tmp_path)
    assert "tail lost" in report.violations[0].detail


async def test_budgets_go_on_behind_a_mark(tmp_path: Path) -> None:
    world = World()
    budgets = ({"holder": "tenant", "unit": "tokens", "limit": 40.0},)
    configured = {"endpoint": "chat", "partition": 0, "budgets": budgets}
    world.throttle.write([EndpointConfigured.model_validate(configured)])
    world.serve("r2", 10)
    assert (await run(world, tmp_path)).violations == []
    world.serve("r3", 10)
    world.serve("r4", 10)
    report = await run(world, tmp_path)
    assert any("budget of 40 tokens" in v.detail for v in report.violations)


@pytest.mark.parametrize("damaged", ["mark", "rows"])
async def test_a_damaged_mark_is_not_used(tmp_path: Path, damaged: str) -> None:
    world = World()
    await run(world, tmp_path)
    (file,) = tmp_path.glob(f"*.{damaged}")
    body = bytearray(file.read_bytes())
    body[-1] ^= 1
    file.write_bytes(body)
    assert Marks(tmp_path).load()[0] == NO_MARK
    assert (await run(world, tmp_path)).since_ms == 0


async def test_a_mark_of_other_rules_is_not_used_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    await run(world, tmp_path)
    (old,) = tmp_path.glob("*.mark")
    monkeypatch.setattr(marks, "fold_key", lambda _: "another")
    assert (await run(world, tmp_path)).since_ms == 0
    assert not old.exists()
    assert sorted(file.suffix for file in tmp_path.iterdir()) == ["", ".mark", ".rows"]


async def test_a_red_run_leaves_the_mark(tmp_path: Path) -> None:
    world = World()
    await run(world, tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    two_ends(world)
    no_answer(world)
    assert not (await run(world, tmp_path)).ok
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


async def test_what_was_not_published_at_the_mark_may_be_removed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was published a second behind the run, and the next one comes after the retention."""
    world = World()
    await world.publish()

    def add_record(line: str) -> None:
        if line == "checking every event":
            world.placement.write([JobHeld(job_id="j2", tenant="red", reason="no_capacity")])

    log = installation(world.broker)
    assert (await verify(log, None, add_record, marks=Marks(tmp_path))).violations == []
    await world.publish()
    world.broker.trim(TP("events", 0), len(world.broker.entries(TP("events", 0))))
    later_ms = now_ms() + TOPICS["events"].retention_ms + 60_000
    monkeypatch.setattr(verify_run, "now_ms", lambda: later_ms)
    report = await verify(installation(world.broker), None, marks=Marks(tmp_path))
    assert report.since_ms and report.violations == []


def test_rows_of_a_file_are_those_of_the_store(tmp_path: Path) -> None:
    store = RowStore()
    store.put("t", "a", (1,))
    store.copy_to(tmp_path / "rows")
    store.put("t", "a", (2,))
    copied = RowStore.copied_from(tmp_path / "rows")
    copied.put("t", "b", (3,))
    assert [*copied.rows("t")] == [("a", (1,)), ("b", (3,))]
