"""Lanes with an input of which only the archive has the next record."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.bus.archive.tiered_log import TieredLog
from shared.bus.hosting.lanes import Lanes
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane
from shared.bus.logs.memory import MemoryLog
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP
from tests.harness.ledger import Seats, command
from tests.patience import until
from tests.shared.bus.archive.archives import Installation
from tests.shared.bus.hosting.test_lanes import Shell

COMMANDS = TP("commands", 0)


class ArchivedShell(Shell):
    """A host on two tiers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder=folder / "snapshots")
        self.site = Installation(folder / "archive", self.broker)
        self.lanes = Lanes(self.make, self.tiered(), on_lane=self.on_lane)
        self.lanes.seek = self.note_seek
        self.sought: list[tuple[TP, int]] = []

    def tiered(self) -> TieredLog:
        return TieredLog(MemoryLog(self.broker), self.site.store)

    def make(self, partition: int) -> Lane[Seats]:
        inputs = [ACCESS, TP("commands", partition)]
        return Lane(self.decider, partition, self.tiered(), inputs=inputs)

    async def note_seek(self, tp: TP, offset: int) -> None:
        self.sought.append((tp, offset))

    async def archive(self, tp: TP, begin: int) -> None:
        """Archive a partition, and trim it."""
        await self.site.archive(tp)
        self.broker.trim(tp, begin)

    def send(self, *ids: str) -> None:
        for name in ids:
            self.broker.append(COMMANDS, command(name))


@pytest.fixture
def shell(tmp_path: Path) -> ArchivedShell:
    return ArchivedShell(tmp_path)


async def test_a_new_reader_of_a_trimmed_input_reads_its_beginning_in_the_archive(
    shell: ArchivedShell,
) -> None:
    shell.grant(3)
    shell.send("c0", "c1", "c2", "c3")
    await shell.archive(COMMANDS, 4)
    await shell.archive(ACCESS, 2)
    await shell.lanes.start()
    await shell.lanes.assign({0})
    answers = await shell.until(0, 7)
    assert answers == [*(f"access/0/{n}/0" for n in (1, 2, 3)), "c0", "c1", "c2", "c3"]
    await until(lambda: shell.sought == [(COMMANDS, 4)])
    shell.send("c4")
    assert await shell.lanes.deliver(COMMANDS, 4, command("c4")) == "ok"
    await shell.until(0, 8)
    await shell.lanes.stop()


async def test_without_the_archive_it_is_a_clear_error(shell: ArchivedShell) -> None:
    shell.send("c0", "c1")
    shell.broker.trim(COMMANDS, 1)
    await shell.lanes.start()
    with pytest.raises(TailLost, match="has not read 0 to 0"):
        await shell.lanes.assign({0})
    await shell.lanes.stop()


async def test_a_host_with_a_gap_waits_for_a_lane_that_reads_the_archive(
    shell: ArchivedShell,
) -> None:
    await shell.lanes.start()
    await shell.lanes.assign({0})
    assert await shell.lanes.resume_at(COMMANDS) == 0
    assert await shell.lanes.resume_at(TP("commands", 7)) is None
    shell.send("c0", "c1", "c2")
    await shell.archive(COMMANDS, 2)
    assert await shell.lanes.deliver(COMMANDS, 2, command("c2")) == "gap"
    assert await shell.lanes.resume_at(COMMANDS) is None
    assert await shell.until(0, 3) == ["c0", "c1", "c2"]
    await until(lambda: (COMMANDS, 3) in shell.sought)
    assert await shell.lanes.resume_at(COMMANDS) == 3
    await shell.lanes.stop()


async def test_a_service_without_a_snapshot_goes_on_though_its_own_ledger_is_trimmed(
    shell: ArchivedShell, tmp_path: Path
) -> None:
    shell.send("c0", "c1")
    await shell.lanes.start()
    await shell.lanes.assign({0})
    for offset in (0, 1):
        await shell.lanes.deliver(COMMANDS, offset, command(f"c{offset}"))
    await shell.until(0, 2)
    await shell.lanes.stop()
    ledger = TP("admission", 0)
    end = len(shell.broker.entries(ledger))
    await shell.archive(ledger, end)
    again = Lanes(shell.make, shell.tiered())
    await again.start()
    await again.assign({0})
    assert list(again.held[0].state.answers) == ["c0", "c1"]
    assert await again.deliver(COMMANDS, 1, command("c1")) == "old"
    await again.stop()
