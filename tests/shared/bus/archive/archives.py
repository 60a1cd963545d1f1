"""Archives of a ledger in memory, for the tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from shared.bus.archive.archive import Archive
from shared.bus.archive.archiver import Archiver, ArchiverOptions
from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.store import ObjectStore
from shared.bus.archive.tiered_log import TieredLog
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.log import Log
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.command_answers import CommandAccepted
from shared.ledger.partition import TP

LEDGER = TP("admission", 0)
INPUT = TP("commands", 0)
NOW_MS = 1_000


@dataclass
class Installation:
    """A broker in memory, an archive in a folder, and a ledger that grows on request."""

    folder: Path
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    seats: int = 0
    store: ObjectStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = FolderStore(self.folder)
        self.store.create()
        self.writer = LedgerWriter(self.broker, LEDGER.topic)

    @property
    def tiered(self) -> TieredLog:
        return TieredLog(MemoryLog(self.broker), self.store)

    def write(self, records: int) -> None:
        """Append records to the ledger, and behind each one that does not count."""
        for _ in range(records):
            seat = self.seats
            event = CommandAccepted(command_id=f"c{seat}", command_type=str(seat), of="job")
            self.writer.write([event])
            self.writer.scribble(b"no record")
            self.broker.append(INPUT, b"command %d" % seat)
            self.seats += 1

    async def archive(
        self,
        tp: TP = LEDGER,
        *,
        writer: str = "a",
        bus: Log | None = None,
        segment_bytes: int = 1 << 20,
    ) -> int:
        """Archive all that the topic has; return how many entries this archiver has made."""
        bus = bus or MemoryLog(self.broker)
        options = ArchiverOptions(writer, segment_bytes)
        archiver = Archiver(bus, Archive(self.store), options, lambda: NOW_MS)
        return await archiver.archive(tp, await bus.end(tp))

    def entry(self, n: int, tp: TP = LEDGER) -> Path:
        return self.folder / tp.topic / str(tp.partition) / "chain" / f"{n:09d}"

    def object(self, n: int, tp: TP = LEDGER) -> Path:
        return self.folder / Archive(self.store).refresh(tp).entries[n].object
