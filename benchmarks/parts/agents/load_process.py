"""A process of simulated agents: options on stdin, observations on stdout, until stdin ends.

A further line on stdin lets all agents open a new session at once.
"""

from __future__ import annotations

import asyncio
import secrets
import sys

import aiohttp
import msgspec

from benchmarks.parts.agents.observation import Kind, Observation, encode_line, wall_ms
from benchmarks.parts.agents.simulated_agent import SimulatedAgent
from shared.contracts.agents import Joined, JoinRequest
from shared.contracts.keys import format_key, hash_secret

JOINS_AT_ONCE = 16
LAG_EVERY_S = 0.1


class LoadOptions(msgspec.Struct, frozen=True):
    """The executor to join, the nodes to be, and the run time of a worker."""

    gateway: str
    token: str
    nodes: tuple[str, ...]
    run_s: float


def observe(kind: Kind, name: str, begun_ms: float, ended_ms: float) -> None:
    sys.stdout.buffer.write(encode_line(Observation(kind, name, begun_ms, ended_ms)))
    sys.stdout.buffer.flush()


async def join_all(options: LoadOptions) -> list[SimulatedAgent]:
    """Enrol every node by the join token, some at once."""
    room = asyncio.Semaphore(JOINS_AT_ONCE)
    async with aiohttp.ClientSession(options.gateway) as client:

        async def enrol(node_id: str) -> SimulatedAgent:
            async with room:
                return await join(client, options, node_id)

        return await asyncio.gather(*map(enrol, options.nodes))


async def join(client: aiohttp.ClientSession, options: LoadOptions, node_id: str) -> SimulatedAgent:
    """Return the agent of a node that has joined. Raises ClientResponseError on a refusal."""
    secret = secrets.token_hex(32)
    request = JoinRequest(
        node_id=node_id, token=options.token, credential_sha256=hash_secret(secret)
    )
    body = request.model_dump(mode="json")
    async with client.post("/agent/v1/join", json=body, raise_for_status=True) as answer:
        joined = Joined.model_validate_json(await answer.read())
    url = joined.executors[0]
    return SimulatedAgent(node_id, format_key(node_id, secret), url, options.run_s, observe)


async def watch_loop() -> None:
    """Report how late this process's own event loop is, so that its delays are known as such."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + LAG_EVERY_S
        await asyncio.sleep(LAG_EVERY_S)
        now_ms = wall_ms()
        observe("loop_lag", "", now_ms - 1000 * (loop.time() - due_s), now_ms)


async def main() -> None:
    stdin = await read_stdin()
    options = msgspec.json.decode(await stdin.readline(), type=LoadOptions)
    agents = await join_all(options)
    tasks = [asyncio.ensure_future(agent.run()) for agent in agents]
    tasks.append(asyncio.ensure_future(watch_loop()))
    while await stdin.readline():
        for agent in agents:
            agent.reconnect()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def read_stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


if __name__ == "__main__":
    asyncio.run(main())
