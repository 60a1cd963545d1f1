"""Commands sent directly to Kafka by the operator of the machine, such as the first key."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from cli.errors import Refused, Unreachable
from infra.supervisor.running import RunningStack
from shared.bus.archive.opening import with_archive
from shared.bus.clock import now_ms
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.producer import TopicProducer
from shared.bus.logs.tail import LedgerTail
from shared.contracts.base import Command
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.ledger.cloudevents import encode
from shared.process.connection import Connection

SOURCE = "/berth/cli"
TOPIC, LEDGER = "access.commands", "access"
MACHINE = "machine"
"""Principal of commands sent directly to Kafka, without a key."""
TIMEOUT_S = 120.0
POLL_S = 0.1


def refuse_recorded(stack: RunningStack, command: str) -> None:
    """Raise Refused if the stack shows a recorded simulation, which is read-only."""
    if stack.recorded:
        raise Refused(f"{command}: {stack.data_dir} is a recorded simulation, which is read-only")


async def send_to_access(
    connection: Connection, commands: Sequence[Command], archive: str = ""
) -> None:
    """Return once access has accepted all commands. Raises Refused with its reason."""
    commands_by_id = {secrets.token_hex(16): command for command in commands}
    tail = LedgerTail(with_archive(KafkaLog(connection), archive), {LEDGER: range(1)})
    await tail.start()
    try:
        async with TopicProducer(connection, timeout_ms=round(1000 * TIMEOUT_S)) as producer:
            for command_id, command in commands_by_id.items():
                await producer.send(TOPIC, 0, _encoded(command_id, command))
        await asyncio.wait_for(_answers(tail, set(commands_by_id)), TIMEOUT_S)
    except TimeoutError:
        raise Unreachable(f"no answer from access within {TIMEOUT_S:g} s") from None
    finally:
        await tail.stop()


async def _answers(tail: LedgerTail, waiting: set[str]) -> None:
    while waiting:
        for accepted in await tail.poll(POLL_S):
            for fact in accepted.facts():
                match fact.event:
                    case CommandAccepted(command_id=command_id):
                        waiting.discard(command_id)
                    case CommandRefused() as refused if refused.command_id in waiting:
                        raise Refused(
                            f"{refused.command_type}: {refused.reason} {refused.detail}".rstrip()
                        )


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
