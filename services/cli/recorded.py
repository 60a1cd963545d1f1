"""A simulation becomes a stack that is only read: its ledgers in a broker, a key, read models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from infra import supervise
from infra.running import RunningStack, save
from infra.stack import BY_NAME
from services.cli.bring_up import new_key
from services.cli.errors import Refused, Unreachable
from services.cli.http_api import Api
from services.cli.target import Target, keep_key
from shared.backup.load import fill
from shared.backup.writer import KafkaRestorer
from shared.bus.clock import now_ms
from shared.bus.decider import Fact
from shared.bus.log import TP, Entry
from shared.contracts.access import KeyCreated
from shared.contracts.topics import LEDGERS
from shared.projections import cursor
from shared.projections.database import connect
from simulator.engine.cell import LANE
from simulator.engine.ledgers import Ledgers
from simulator.engine.public import restored
from simulator.engine.recording import File, Recording, values

SERVICES = ("projector", "gateway")
ACCESS = "access"
LOOK_S = 0.2
KEY_S = 30.0

Say = Callable[[str], None]


def options(data: Path, port: int, foreground: bool) -> supervise.StackOptions:
    """No decider among the services: a second one of its ledgers would go on with them."""
    return supervise.StackOptions(
        data_dir=data, partitions=1, http_port=port, foreground=foreground,
        services=tuple(BY_NAME[name] for name in SERVICES),
        env={"gateway": {"BERTH_RECORDED": "1"}},
    )  # fmt: skip


def show(stack: RunningStack, folder: Path, recording: Recording, say: Say) -> RunningStack:
    """Returns once the API tells all of it; the copy has one record more, which made the key."""
    shown = stack.model_copy(update={"recorded": str(folder.resolve())})
    save(shown)
    key, command = new_key("operator")
    made = KeyCreated(**command.model_dump())
    asyncio.run(_copied(shown, folder, recording, made, say))
    asyncio.run(_projected(shown, recording, say))
    _let_in(shown, key)
    keep_key(shown.data_dir, key)
    return shown


def refuse_recorded(stack: RunningStack, what: str) -> None:
    """For commands that go past the gateway, which would say the same."""
    if stack.recorded:
        raise Refused(f"{what}: {stack.data_dir} shows a recorded simulation, which stays as it is")


def key_record(folder: Path, made: KeyCreated, at: int) -> bytes:
    """What follows the last record of the simulated access ledger."""
    broker = restored(folder, [ACCESS])
    seq = len(broker.entries(TP(ACCESS, LANE))) + 1
    Ledgers(broker).record(ACCESS, [Fact(made, ACCESS, LANE, seq, 0, at)], {})
    value = broker.entries(TP(ACCESS, LANE))[-1].value
    assert value is not None
    return value


async def _copied(
    stack: RunningStack, folder: Path, recording: Recording, made: KeyCreated, say: Say
) -> None:
    async with KafkaRestorer(stack.connection("operator")) as restorer:
        for file in recording.files:
            say(f"{file.topic}, {file.records:,} of {recording.records:,} records")
            last = [key_record(folder, made, now_ms())] if file.topic == ACCESS else []
            await fill(file.tp, _entries(folder, file, last), restorer)


def _entries(folder: Path, file: File, last: list[bytes]) -> Iterator[Entry]:
    for offset, value in enumerate(chain(values(folder, file), last)):
        yield Entry(offset, None, value)


async def _projected(stack: RunningStack, recording: Recording, say: Say) -> None:
    """The projector ends only by a broken ledger, and the stack with its broker."""
    due = {file.topic: file.records for file in recording.files if file.topic in LEDGERS}
    due[ACCESS] += 1
    conn = await connect(stack.postgres)
    try:
        while True:
            found = {place[0]: at.next for place, at in (await cursor.read(conn)).items()}
            left = sum(end - found.get(ledger, 0) for ledger, end in due.items())
            if left == 0:
                return
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
