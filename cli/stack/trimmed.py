"""Trims the topics of a stack behind its archive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from cli.stack.archived import started_log
from infra.broker import trimming
from infra.broker.topics import connect
from infra.security.acls import trimmer
from infra.security.rights import TRIM
from infra.supervisor.running import RunningStack
from shared.bus.archive.archive import Archive
from shared.bus.archive.archiving import archived_partitions
from shared.bus.archive.opening import open_store
from shared.bus.archive.trim import trim_bound
from shared.bus.clock import now_ms
from shared.ledger.partition import TP
from shared.process.progress import ReportLine


@dataclass(frozen=True, slots=True)
class TrimStep:
    """The records of one partition that may go: those from `begin` to `trim_to` - 1."""

    topic: str
    partition: int
    begin: int
    trim_to: int
    end: int
    rule: str

    @property
    def records(self) -> int:
        return max(0, self.trim_to - self.begin)

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"records": self.records}


async def plan_trim(
    stack: RunningStack, tps: Iterable[TP], kept_ms: int, report_line: ReportLine
) -> list[TrimStep]:
    """Read back what was not read back before; return what may go. Raises BadArchive."""
    archive = Archive(open_store(stack.archive))
    report_line("reading back what is new in the archive")
    checked: dict[TP, int] = {}
    for tp in tps:
        await asyncio.to_thread(archive.check, tp, now_ms())
        checked[tp] = await asyncio.to_thread(archive.checked, tp)
    chains = {tp: archive.refresh(tp) for tp in archived_partitions(stack.partitions)}
    kept_since_ms = now_ms() - kept_ms
    log = await started_log(stack)
    try:
        steps: list[TrimStep] = []
        for tp, entry in checked.items():
            bound = trim_bound(tp, chains, entry, kept_since_ms, stack.partitions)
            begin, end = await log.begin(tp), await log.end(tp)
            steps.append(TrimStep(*tp, begin, min(bound.offset, end), end, bound.rule))
        return steps
    finally:
        await log.stop()


def trim(stack: RunningStack, steps: Sequence[TrimStep]) -> None:
    """Remove the records of the steps, as a user that exists for this run alone."""
    offsets = {TP(step.topic, step.partition): step.trim_to for step in steps if step.records}
    if not offsets:
        return
    if stack.secrets is None:
        trimming.trim(stack.connection("admin"), offsets)
        return
    admin = connect(stack.connection("admin"))
    try:
        with trimmer(admin, {tp.topic for tp in offsets}) as password:
            user = replace(stack.connection("admin"), user=TRIM, password=password)
            trimming.trim(user, offsets)
    finally:
        admin.close()
