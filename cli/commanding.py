"""Commands straight to Kafka, for who holds the machine: the first key opens the API with them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from cli.errors import Refused, Unreachable
from infra.supervisor.running import RunningStack
from shared.bus.clock import now_ms
from shared.bus.kafka import KafkaLog
from shared.bus.producer import TopicProducer
from shared.bus.tail import LedgerTail
from shared.connection import Connection
from shared.contracts.base import Command
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.ledger.cloudevents import encode

SOURCE = "/berth/cli"
TOPIC, LEDGER = "access.commands", "access"
MACHINE = "machine"
"""Who holds the machine needs no key; the record says so."""
TIMEOUT_S = 30.0
POLL_S = 0.1


def refuse_recorded(stack: RunningStack, what: str) -> None:
    """For commands that go past the gateway, which would say the same."""
    if stack.recorded:
        raise Refused(f"{what}: {stack.data_dir} shows a recorded simulation, which stays as it is")


async def ask_access(connection: Connection, commands: Sequence[Command]) -> None:
    """Returns once access has accepted all of them; raises Refused with its reason."""
    asked = {secrets.token_hex(16): command for command in commands}
    tail = LedgerTail(KafkaLog(connection), {LEDGER: range(1)})
    await tail.start()
    try:
        async with TopicProducer(connection) as producer:
            for command_id, command in asked.items():
                await producer.send(TOPIC, 0, _encoded(command_id, command))
        await asyncio.wait_for(_answers(tail, set(asked)), TIMEOUT_S)
    except TimeoutError:
        raise Unreachable(f"access did not answer within {TIMEOUT_S:g} s") from None
    finally:
        await tail.stop()


async def _answers(tail: LedgerTail, waiting: set[str]) -> None:
    while waiting:
        for accepted in await tail.poll(POLL_S):
            for fact in accepted.facts():
                match fact.event:
                    case CommandAccepted(command_id=command_id):
                        waiting.discard(command_id)
                    case CommandRefused() as no if no.command_id in waiting:
                        raise Refused(f"{no.command_type}: {no.reason} {no.detail}".rstrip())


def _encoded(command_id: str, command: Command) -> bytes:
    data = command.model_dump_json(exclude_none=True).encode()
    return encode(
        id=command_id,
        source=SOURCE,
        type=command.TYPE,
        data=data,
        at_ms=now_ms(),
        principal=MACHINE,
    )
