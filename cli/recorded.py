"""A simulation becomes a stack that is only read: its ledgers in a broker, a key, read models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cli.bring_up import new_key
from cli.errors import Refused, Unreachable
from cli.http_api import Api
from cli.target import Target, keep_key
from infra.supervisor import supervise
from infra.supervisor.running import RunningStack, save
from infra.supervisor.stack import BY_NAME
from shared.backup.load import fill
from shared.backup.writer import KafkaRestorer
from shared.bus.clock import now_ms
from shared.bus.log import Entry
from shared.contracts.access import KeyCreated
from shared.contracts.topics import LEDGERS
from shared.ledger.decider import Fact
from shared.ledger.partition import TP
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
"""Of those that wait, else of those that have ended."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sight:
    """Jobs by phase, and the one that waits, or waited, longest; empty where there is none."""

    phases: dict[str, int]
    waited_longest: str


def options(data: Path, port: int, foreground: bool) -> supervise.StackOptions:
    """No decider among the services: a second one of its ledgers would go on with them."""
    return supervise.StackOptions(
        data_dir=data,
        partitions=1,
        http_port=port,
        foreground=foreground,
        services=tuple(BY_NAME[name] for name in SERVICES),
        env={"gateway": {"BERTH_RECORDED": "1"}},
    )


def show(
    stack: RunningStack, folder: Path, recording: Recording, until_ms: int | None, say: Say
) -> tuple[RunningStack, Sight]:
    """Returns once the API tells all of it, with what there is to see.

    What is shown has one record more than what was simulated: it made the key.
    """
    shown = stack.model_copy(update={"recorded": str(folder.resolve())})
    save(shown)
    key, command = new_key("operator")
    made = KeyCreated(**command.model_dump())
    ends = asyncio.run(_copied(shown, folder, recording, until_ms, made, say))
    sight = asyncio.run(_projected(shown, ends, say))
    _let_in(shown, key)
    keep_key(shown.data_dir, key)
    return shown, sight


def key_record(folder: Path, made: KeyCreated, at: int) -> bytes:
    """What follows the last record of the simulated access ledger."""
    broker = restore_broker(folder, [ACCESS])
    seq = len(broker.entries(TP(ACCESS, LANE))) + 1
    Ledgers(broker).record(ACCESS, [Fact(made, ACCESS, LANE, seq, 0, at)], {})
    value = broker.entries(TP(ACCESS, LANE))[-1].value
    assert value is not None
    return value


async def _copied(
    stack: RunningStack,
    folder: Path,
    recording: Recording,
    until_ms: int | None,
    made: KeyCreated,
    say: Say,
) -> dict[str, int]:
    """Records by topic."""
    ends: dict[str, int] = {}
    async with KafkaRestorer(stack.connection("operator")) as restorer:
        for file in recording.files:
            say(f"{file.topic}, {file.records:,} of {recording.records:,} records")
            last = [key_record(folder, made, now_ms())] if file.topic == ACCESS else []
            found = chain(read_values(folder, file, until_ms), last)
            ends[file.topic] = await fill(file.tp, _entries(found), restorer)
    return ends


def _entries(found: Iterable[bytes]) -> Iterator[Entry]:
    for offset, value in enumerate(found):
        yield Entry(offset, None, value)


async def _projected(stack: RunningStack, ends: Mapping[str, int], say: Say) -> Sight:
    """What is there once all is projected.

    The projector ends by itself only where a ledger is broken, and then this is said.
    """
    conn = await connect(stack.postgres)
    try:
        while True:
            found = {place[0]: at.next for place, at in (await cursor.read(conn)).items()}
            left = sum(ends[ledger] - found.get(ledger, 0) for ledger in LEDGERS)
            if left == 0:
                phases = {row["phase"]: row["jobs"] for row in await conn.fetch(PHASES)}
                return Sight(phases, str(await conn.fetchval(WAITED_LONGEST) or ""))
            say(f"{left:,} ledger records to be projected")
            supervise.refuse_ended(stack.data_dir)
            await asyncio.sleep(LOOK_S)
    finally:
        await conn.close()


def _let_in(stack: RunningStack, key: str) -> None:
    """Until the gateway has read of the key."""
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
