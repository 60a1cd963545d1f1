"""The floor of the spine benchmark: four bare relays of one record per job, without Berth."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from infra.broker.topics import create
from infra.supervisor.parts import root
from infra.supervisor.running import RunningStack, load
from shared.contracts.topics import TopicSpec
from shared.process.connection import Connection

HOPS = 4
OUTSTANDING = 400
PAYLOAD = b"x" * 600
START_S = 60.0


def topics(tag: str) -> list[str]:
    return [f"relay.{tag}.{number}" for number in range(HOPS + 1)]


def make_topics(stack: RunningStack, tag: str) -> None:
    specs = [TopicSpec(name, "ledgered", -1, True) for name in topics(tag)]
    create(root(stack), 1, stack.durable, specs)


async def consumer(connection: Connection, topic: str) -> AIOKafkaConsumer:
    """Return a started consumer at the beginning of the topic."""
    reader = AIOKafkaConsumer(**connection.aiokafka(), auto_offset_reset="earliest")
    await reader.start()
    reader.assign([TopicPartition(topic, 0)])
    reader.seek(TopicPartition(topic, 0), 0)
    return reader


async def relay(connection: Connection, source: str, target: str) -> None:
    """Run one hop until killed: read available records, send each on, wait for the acks."""
    reader = await consumer(connection, source)
    writer = AIOKafkaProducer(**connection.aiokafka(), acks="all", linger_ms=0)
    await writer.start()
    while True:
        batches = await reader.getmany(timeout_ms=200)
        sent = [
            await writer.send(target, message.value, partition=0)
            for messages in batches.values()
            for message in messages
        ]
        if sent:
            await asyncio.gather(*sent)


async def measure(stack: RunningStack, tag: str, seconds: float, warm_s: float = 3.0) -> float:
    """Return records per second through all hops, with OUTSTANDING of them in transit."""
    names = topics(tag)
    hops = [
        subprocess.Popen([sys.executable, "-m", __name__, str(stack.data_dir), a, b])
        for a, b in zip(names, names[1:], strict=False)
    ]
    try:
        return await closed_loop(root(stack), names[0], names[-1], seconds, warm_s)
    finally:
        for hop in hops:
            hop.terminate()
        for hop in hops:
            hop.wait()


async def closed_loop(
    connection: Connection, first: str, last: str, seconds: float, warm_s: float
) -> float:
    writer = AIOKafkaProducer(**connection.aiokafka(), acks="all", linger_ms=2)
    reader = await consumer(connection, last)
    await writer.start()
    try:
        for _ in range(OUTSTANDING):
            await writer.send(first, PAYLOAD, partition=0)
        # The hops are processes that first have to start.
        async with asyncio.timeout(START_S):
            while not await replace_received(reader, writer, first):
                pass
        begin = time.perf_counter()
        counted = 0
        while (now := time.perf_counter()) < begin + warm_s + seconds:
            received = await replace_received(reader, writer, first)
            if now >= begin + warm_s:
                counted += received
        return counted / seconds
    finally:
        await writer.stop()
        await reader.stop()


async def replace_received(reader: AIOKafkaConsumer, writer: AIOKafkaProducer, first: str) -> int:
    """Send a new record for each that was received; return their number."""
    batches = await reader.getmany(timeout_ms=200)
    received = sum(len(messages) for messages in batches.values())
    for _ in range(received):
        await writer.send(first, PAYLOAD, partition=0)
    return received


if __name__ == "__main__":
    data_dir, *names_of_hop = sys.argv[1:4]
    asyncio.run(relay(root(load(Path(data_dir))), *names_of_hop))
