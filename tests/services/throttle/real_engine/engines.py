"""A llama.cpp server with a model of random weights behind the throttle, and its clients."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from infra.llama.packages import LlamaMissing
from infra.llama.server import LlamaServer, start
from infra.machine.environments import EnvironmentMissing, environment, python_of
from tests.patience import PATIENCE_S
from tests.services.throttle.shell import KEY, MODEL, ThrottleStack

SLOTS = 4
PROGRAMS = Path(__file__).parent


@contextmanager
def llama_server(folder: Path) -> Iterator[LlamaServer]:
    """Yield an engine; skip the tests where it cannot be had."""
    try:
        server = start(folder, SLOTS)
    except LlamaMissing as missing:
        pytest.skip(str(missing))
    try:
        yield server
    finally:
        server.stop()


@asynccontextmanager
async def serving_llama(
    tmp_path: Path, server: LlamaServer, slots: int = SLOTS, **settings: Any
) -> AsyncIterator[tuple[ThrottleStack, aiohttp.ClientSession]]:
    """Serve one endpoint before the engine; yields the stack and a client."""
    stack = ThrottleStack(tmp_path, server.url, **settings)
    (upstream,) = stack.endpoint.upstreams
    stack.endpoint = stack.endpoint.model_copy(
        update={"upstreams": (upstream.model_copy(update={"max_requests": slots}),)}
    )
    stack.access(stack.endpoint)
    async with stack.running() as client:
        yield stack, client


async def busy_slots(url: str) -> int:
    """Return how many slots of the engine have a request."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/slots") as answer:
        return sum(slot["is_processing"] for slot in await answer.json())


def client_python(client: str) -> Path:
    """Return the interpreter with that client; skip the test where it cannot be had.

    `openai` is the one of the project's own environment.
    """
    if client == "openai":
        return Path(sys.executable)
    try:
        if client == "older openai":
            return python_of(environment("openai-2", ("openai<3",)))
        return python_of(environment("litellm", ("litellm[proxy]",)))
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))


async def run_client(python: Path, program: str, url: str, case: str) -> dict[str, Any]:
    """Run one case of a program of a client, and return what it has printed."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(PROGRAMS / program),
        f"{url}/v1",
        KEY,
        MODEL,
        case,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONWARNINGS": "ignore"},
    )
    async with asyncio.timeout(PATIENCE_S):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-2000:]
    result: dict[str, Any] = json.loads(out.decode().splitlines()[-1])
    return result
