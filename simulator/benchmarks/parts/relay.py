"""The floor of the spine: four bare relays of one record per job, without any Berth."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from infra.topics import create
from shared.contracts.topics import TopicSpec

HOPS = 4
OUTSTANDING = 400
PAYLOAD = b"x" * 600


def topics(tag: str) -> list[str]:
    return [f"relay.{tag}.{number}" for number in range(HOPS + 1)]


def make_topics(kafka: str, tag: str, durable: bool) -> None:
    specs = [TopicSpec(name, "ledgered", -1, True) for name in topics(tag)]
    create(kafka, 1, durable, specs)


async def consumer(kafka: str, topic: str) -> AIOKafkaConsumer:
    found = AIOKafkaConsumer(bootstrap_servers=kafka, auto_offset_reset="earliest")
    await found.start()
    found.assign([TopicPartition(topic, 0)])
    found.seek(TopicPartition(topic, 0), 0)
    return found


async def relay(kafka: str, source: str, target: str) -> None:
    """One hop, for ever: read what is there, send each record on, wait for the acks."""
    reader = await consumer(kafka, source)
    writer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all", linger_ms=0)
    await writer.start()
    while True:
        found = await reader.getmany(timeout_ms=200)
        sent = [
            await writer.send(target, message.value, partition=0)
            for messages in found.values()
            for message in messages
        ]
        if sent:
            await asyncio.gather(*sent)


async def measure(kafka: str, tag: str, seconds: float, warm_s: float = 3.0) -> float:
    """Records per second that come through all hops, with OUTSTANDING of them under way."""
    names = topics(tag)
    hops = [
        subprocess.Popen([sys.executable, "-m", __name__, kafka, a, b])
        for a, b in zip(names, names[1:], strict=False)
    ]
    try:
        return await closed_loop(kafka, names[0], names[-1], seconds, warm_s)
    finally:
        for hop in hops:
            hop.terminate()
        for hop in hops:
            hop.wait()


async def closed_loop(kafka: str, first: str, last: str, seconds: float, warm_s: float) -> float:
    writer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all", linger_ms=2)
    reader = await consumer(kafka, last)
    await writer.start()
    try:
        for _ in range(OUTSTANDING):
            await writer.send(first, PAYLOAD, partition=0)
        begin = time.perf_counter()
        counted = 0
        while (now := time.perf_counter()) < begin + warm_s + seconds:
            found = await reader.getmany(timeout_ms=200)
            came = sum(len(messages) for messages in found.values())
            for _ in range(came):
                await writer.send(first, PAYLOAD, partition=0)
            if now >= begin + warm_s:
                counted += came
        return counted / seconds
    finally:
        await writer.stop()
        await reader.stop()


if __name__ == "__main__":
    asyncio.run(relay(*sys.argv[1:4]))
