"""A run behind a mark reads all of a topic that is another one than before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from shared.bus.logs.log import Feed
from shared.bus.logs.memory import MemoryLog
from shared.contracts.placement import JobHeld
from shared.ledger.errors import BadArchive
from shared.ledger.partition import TP
from shared.verify.marks import Marks
from shared.verify.reading import InstallationLog
from shared.verify.report import ACKED, CHAIN
from shared.verify.run import verify
from tests.shared.verify.test_marks import run, submit
from tests.shared.verify.test_run import World, an_event_with_two_contents, installation

COMMANDS, EVENTS = TP("commands", 0), TP("events", 0)
LOST = "lacks the last record that an earlier run has read: tail lost"


async def test_a_command_in_the_place_of_a_lost_one_is_never_answered(tmp_path: Path) -> None:
    """Its service has read beyond this offset, and never reads it."""
    world = World()
    await run(world, tmp_path)
    del world.broker.entries(COMMANDS)[3:]
    submit(world, "c7")
    for _ in range(2):
        report = await run(world, tmp_path)
        details = [violation.detail for violation in report.violations]
        assert report.since_ms == 0 and ACKED in report.rules
        assert LOST in details and "job.submit.v1 c7: no answer" in details


async def test_a_lost_command_that_no_service_had_read_is_reported(tmp_path: Path) -> None:
    """A whole run alone would be green: nothing in the log names the command."""
    world = World()
    submit(world, "c7")
    assert (await run(world, tmp_path)).violations == []
    del world.broker.entries(COMMANDS)[4:]
    report = await run(world, tmp_path)
    assert [(v.position, v.detail) for v in report.violations] == [("commands-0", LOST)]
    assert (await run(world, tmp_path, whole=True)).violations == []
    assert (await run(world, tmp_path)).since_ms


async def test_a_topic_without_new_records_keeps_its_anchor(tmp_path: Path) -> None:
    world = World()
    submit(world, "c7")
    for _ in range(3):
        assert (await run(world, tmp_path)).violations == []
    assert len(Marks(tmp_path).load()[0].anchors) == 2
    del world.broker.entries(COMMANDS)[4:]
    assert not (await run(world, tmp_path)).ok


@pytest.mark.parametrize("more", [0, 40], ids=["shorter", "longer"])
async def test_events_that_were_made_anew_are_read_from_their_begin(
    tmp_path: Path, more: int
) -> None:
    """They are not archived: the publisher writes them again, at other offsets."""
    world = World()
    await run(world, tmp_path)
    await run(world, tmp_path)
    held = [JobHeld(job_id="j2", tenant="red", reason="no_capacity") for _ in range(more)]
    world.placement.write(held)
    world.broker.entries(EVENTS).clear()
    report = await run(world, tmp_path)
    assert (report.violations, report.since_ms) == ([], 0)
    assert (await run(world, tmp_path)).since_ms


async def test_what_retention_has_removed_is_taken_for_unchanged(tmp_path: Path) -> None:
    world = World()
    await run(world, tmp_path)
    world.broker.trim(EVENTS, len(world.broker.entries(EVENTS)))
    report = await run(world, tmp_path)
    assert report.violations == [] and report.since_ms


class Damaged(MemoryLog):
    """The archive of `commands` cannot be read."""

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        if COMMANDS in start:
            raise BadArchive("commands-0: segment 3 is damaged")
        return await super().feed(start, lossy=lossy)


async def test_a_topic_that_cannot_be_read_is_in_the_report(tmp_path: Path) -> None:
    world = World()
    await run(world, tmp_path)
    damaged = InstallationLog(Damaged(world.broker), 1, quiet_s=0.0, catch_up_s=0.5)
    for whole in (False, True):
        report = await verify(damaged, None, marks=Marks(tmp_path), whole=whole)
        assert [(v.rule, v.detail) for v in report.violations] == [
            (CHAIN, "commands-0: segment 3 is damaged")
        ]


def another_index(world: World) -> None:
    world.publish_one("placement/0/1/77", "job.succeeded.v1", b'{"job_id":"never"}')


def another_spelling(world: World) -> None:
    world.publish_one("placement/0/01/0", "node.joined.v1", b"{}")


def another_type(world: World) -> None:
    world.publish_one("placement/0/1/0", "job.failed.v1", b'{"job_id":"other"}')


@pytest.mark.parametrize("damage", [another_index, another_spelling, another_type])
async def test_an_event_under_an_old_id_that_no_ledger_has_is_reported(
    tmp_path: Path, damage: Callable[[World], None]
) -> None:
    world = World()
    await run(world, tmp_path)
    damage(world)
    for _ in range(2):
        report = await run(world, tmp_path)
        assert report.since_ms
        assert any("in events but in no ledger" in v.detail for v in report.violations)


async def test_another_content_is_reported_where_the_mark_is_not_of_the_first_run(
    tmp_path: Path,
) -> None:
    """The content of an event that was removed unread is known once it is published again."""
    world = World()
    await world.publish()
    world.broker.trim(EVENTS, len(world.broker.entries(EVENTS)))
    log = installation(world.broker)
    assert (await verify(log, None, marks=Marks(tmp_path))).violations == []
    assert (await run(world, tmp_path)).violations == []
    an_event_with_two_contents(world)
    report = await run(world, tmp_path)
    assert [(v.position, v.detail) for v in report.violations] == [
        ("placement/0/1/0", "is in events with two contents")
    ]
