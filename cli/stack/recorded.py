"""Opens a recorded simulation as a read-only stack: ledgers, a key, read models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cli.api.http import Api
from cli.api.target import Target, store_key
from cli.errors import Refused, Unreachable
from cli.stack.bring_up import new_key
from infra.supervisor import supervise
from infra.supervisor.running import RunningStack, save
from infra.supervisor.stack import BY_NAME
from shared.backup.load import fill
from shared.backup.writer import KafkaRestorer
from shared.bus.clock import now_ms
from shared.bus.logs.log import Entry
from shared.contracts.access import KeyCreated
from shared.contracts.topics import LEDGERS
from shared.ledger.decider import Fact
from shared.ledger.partition import TP
from shared.process.progress import ReportLine
from shared.projections import cursor
from shared.projections.database import connect
from simulator.engine.lane import LANE
from simulator.engine.ledgers import Ledgers
from simulator.engine.recording import Recording, read_values, restore_broker

SERVICES = ("projector", "gateway")
ACCESS = "access"
LOOK_S = 0.2
KEY_S = 30.0
PHASES = "SELECT phase, count(*) AS jobs FROM job GROUP BY phase ORDER BY phase"
WAITED_LONGEST = """
SELECT job_id FROM job
ORDER BY phase <> 'waiting', CASE WHEN phase = 'waiting' THEN waiting_since
    ELSE submitted_at + ran_ms - ended_at END, job_id LIMIT 1
"""
"""The longest wait among waiting jobs, else among ended ones."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Jobs by phase, and the id of the job with the longest wait (empty if there is none)."""

    phases: dict[str, int]
    waited_longest: str


def options(data: Path, port: int, foreground: bool, last_ms: int) -> supervise.StackOptions:
    """Return options of a stack without deciders, which would append to the ledgers.

    Running times count up to `last_ms`, the last moment that is shown.
    """
    return supervise.StackOptions(
        data_dir=data,
        partitions=1,
        http_port=port,
        foreground=foreground,
        services=tuple(BY_NAME[name] for name in SERVICES),
        env={"gateway": {"BERTH_RECORDED": "1", "BERTH_RECORDED_AT": str(last_ms)}},
    )


def show(
    stack: RunningStack,
    folder: Path,
    recording: Recording,
    until_ms: int | None,
    report_line: ReportLine,
) -> tuple[RunningStack, Overview]:
    """Copy the simulation into the stack; return the overview once the API serves all of it.

    The stack holds one record more than the simulation: the one that creates the key.
    """
    shown = stack.model_copy(update={"recorded": str(folder.resolve())})
    save(shown)
    key, command = new_key("operator")
    key_created = KeyCreated(**command.model_dump())
    ends = asyncio.run(_copied(shown, folder, recording, until_ms, key_created, report_line))
    overview = asyncio.run(_projected(shown, ends, report_line))
    _let_in(shown, key)
    store_key(shown.data_dir, key)
    return shown, overview


def key_record(folder: Path, key_created: KeyCreated, at: int) -> bytes:
    """Return the record that follows the last one of the simulated access ledger."""
    broker = restore_broker(folder, [ACCESS])
    seq = len(broker.entries(TP(ACCESS, LANE))) + 1
    Ledgers(broker).record(ACCESS, [Fact(key_created, ACCESS, LANE, seq, 0, at)], {})
    value = broker.entries(TP(ACCESS, LANE))[-1].value
    assert value is not None
    return value


async def _copied(
    stack: RunningStack,
    folder: Path,
    recording: Recording,
    until_ms: int | None,
    key_created: KeyCreated,
    report_line: ReportLine,
) -> dict[str, int]:
    """Copy the simulation's records into the broker; return their number by topic."""
    ends: dict[str, int] = {}
    async with KafkaRestorer(stack.connection("operator")) as restorer:
        for file in recording.files:
            report_line(f"{file.topic}, {file.records:,} of {recording.records:,} records")
            last = [key_record(folder, key_created, now_ms())] if file.topic == ACCESS else []
            values = chain(read_values(folder, file, until_ms), last)
            ends[file.topic] = await fill(file.tp, _entries(values), restorer)
    return ends


def _entries(values: Iterable[bytes]) -> Iterator[Entry]:
    for offset, value in enumerate(values):
        yield Entry(offset, None, value)


async def _projected(
    stack: RunningStack, ends: Mapping[str, int], report_line: ReportLine
) -> Overview:
    """Return the overview once all records are projected.

    Raises if the projector exits, which it does only on a broken ledger.
    """
    conn = await connect(stack.postgres)
    try:
        while True:
            projected = {place[0]: at.next for place, at in (await cursor.read(conn)).items()}
            left = sum(ends[ledger] - projected.get(ledger, 0) for ledger in LEDGERS)
            if left == 0:
                phases = {row["phase"]: row["jobs"] for row in await conn.fetch(PHASES)}
                return Overview(phases, str(await conn.fetchval(WAITED_LONGEST) or ""))
            report_line(f"{left:,} ledger records left to project")
            supervise.refuse_ended(stack.data_dir)
            await asyncio.sleep(LOOK_S)
    finally:
        await conn.close()


def _let_in(stack: RunningStack, key: str) -> None:
    """Wait until the gateway accepts the key."""
    client, ends_s = Api(Target(stack.gateway, key)), time.monotonic() + KEY_S
    while True:
        try:
            client.get("/v1/pools")
        except (Refused, Unreachable):
            if time.monotonic() > ends_s:
                raise
            time.sleep(LOOK_S)
        else:
            return
