"""Checkpoints of the deciders by the code at hand, beside services that run other code.

A version whose fold is another one has no snapshot that it may use. Folding every ledger before the
switch spares the services a start from 0.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cli.errors import BadInput, Refused
from infra.supervisor.running import RunningStack
from services.access.core.decide import Access
from services.admission.core.decide import Admission
from services.failslow.core.decide import FailSlow
from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from services.throttle.core.decide import Throttle
from shared.bus.archive.opening import with_archive
from shared.bus.folds.fold import Fold
from shared.bus.hosting.host import partitions_of, snapshots_of
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.ledger.decider import Decider
from shared.ledger.reader import Cursor
from shared.process.progress import ReportLine
from shared.process.settings import Settings

DECIDERS: tuple[Callable[[], Decider[Any]], ...] = (
    Access,
    Admission,
    Priority,
    Placement,
    FailSlow,
    Throttle,
)


@dataclass(frozen=True, slots=True)
class LaneCheckpoint:
    """A lane with a snapshot of this code: what it folds from, and what was folded for it."""

    ledger: str
    partition: int
    seq: int
    records: int
    """Records that were folded now; 0: the newest snapshot was of this code already."""
    folders: int
    """Data folders of copies of the service that have it."""
    wall_s: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def checkpoint(stack: RunningStack, report_line: ReportLine) -> list[LaneCheckpoint]:
    """Fold every ledger with this code and store snapshots for the next start of each decider.

    Raises Refused where the services keep their data elsewhere, as in containers.
    """
    if not any(_present(folders_of(stack.state, make().ledger)) for make in DECIDERS):
        raise Refused(f"no decider has its data in {stack.state}: run it where the services run")
    return asyncio.run(_checkpoint(stack, report_line))


async def _checkpoint(stack: RunningStack, report_line: ReportLine) -> list[LaneCheckpoint]:
    log = with_archive(
        KafkaLog(stack.connection("verify"), client="berth-checkpoint"), stack.archive
    )
    done: list[LaneCheckpoint] = []
    await log.start()
    try:
        for make in DECIDERS:
            folders = folders_of(stack.state, make().ledger)
            done += await _checkpoint_lanes(make, stack.partitions, log, folders, report_line)
    finally:
        await log.stop()
    return done


def checkpoint_service(
    ledger: str, settings: Settings, report_line: ReportLine
) -> list[LaneCheckpoint]:
    """Fold the ledger of one decider by the settings that it starts with, into its own folder.

    For containers, each of which has one service. Raises BadInput for a service without a ledger.
    """
    deciders = {make().ledger: make for make in DECIDERS}
    if ledger not in deciders:
        raise BadInput(f"--service {ledger}: has no ledger; these have: {', '.join(deciders)}")
    log = with_archive(KafkaLog(settings.connection, client="berth-checkpoint"), settings.archive)
    settings.data.mkdir(parents=True, exist_ok=True)

    async def fold() -> list[LaneCheckpoint]:
        await log.start()
        try:
            return await _checkpoint_lanes(
                deciders[ledger], settings.partitions, log, [settings.data], report_line
            )
        finally:
            await log.stop()

    return asyncio.run(fold())


async def _checkpoint_lanes(
    make: Callable[[], Decider[Any]],
    partitions: int,
    log: Log,
    folders: Sequence[Path],
    report_line: ReportLine,
) -> list[LaneCheckpoint]:
    done: list[LaneCheckpoint] = []
    for lane in range(partitions_of(make().ledger, partitions)):
        report_line(f"{make().ledger}, lane {lane}")
        done.append(await checkpoint_lane(make(), lane, log, folders))
    return done


def folders_of(state: Path, ledger: str) -> list[Path]:
    """Return the data folders of a decider and its copies, `placement-2` and so on."""
    copies = (path for path in state.glob(f"{ledger}-*") if path.name.rpartition("-")[2].isdigit())
    return [state / ledger, *sorted(copies)]


async def checkpoint_lane(
    decider: Decider[Any], lane: int, log: Log, folders: Sequence[Path]
) -> LaneCheckpoint:
    """Fold one lane to its end, and store its snapshot in each folder.

    Raises TailLost or LaneHalted for a ledger that this code cannot fold: so would the service.
    """
    began_s = time.monotonic()
    stores = [snapshots_of(decider, folder, lane) for folder in _present(folders)]
    fold = Fold(decider, lane, log, stores[0] if stores else None)
    replica = await fold.run(Cursor())
    if replica.records:
        packed = stores[0].pack(replica.cursor, replica.state) if stores else b""
        for store in stores:
            await asyncio.to_thread(store.store, replica.cursor.seq, packed)
    return LaneCheckpoint(
        decider.ledger,
        lane,
        replica.cursor.seq,
        replica.records,
        len(stores),
        round(time.monotonic() - began_s, 2),
    )


def _present(folders: Iterable[Path]) -> list[Path]:
    return [folder for folder in folders if folder.is_dir()]
