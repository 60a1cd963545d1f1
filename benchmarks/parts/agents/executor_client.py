"""Requests of one simulated agent to its executor, over connections of its own."""

from __future__ import annotations

from typing import TypeVar

import aiohttp
from pydantic import BaseModel

from shared.contracts.base import Model

Answer = TypeVar("Answer", bound=BaseModel)
FAILURES = (aiohttp.ClientError, OSError, TimeoutError)


class RequestRefused(Exception):
    """The executor refused a request, or did not answer; the text says which."""


class ExecutorClient:
    """Posts messages with the credential of one node. Raises RequestRefused."""

    def __init__(self, url: str, credential: str) -> None:
        self._client = aiohttp.ClientSession(
            url,
            headers={"Authorization": f"Bearer {credential}", "Content-Type": "application/json"},
            connector=aiohttp.TCPConnector(limit=0),
        )

    async def post(
        self, name: str, message: Model, answer: type[Answer], timeout_s: float
    ) -> Answer:
        """Return the answer to a request that has one."""
        return answer.model_validate_json(await self._post(name, message, timeout_s))

    async def send(self, name: str, message: Model, timeout_s: float) -> None:
        """Return once a request without an answer is accepted."""
        await self._post(name, message, timeout_s)

    async def close(self) -> None:
        await self._client.close()

    async def _post(self, name: str, message: Model, timeout_s: float) -> bytes:
        body = message.model_dump_json(exclude_none=True).encode()
        limit = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._client.post(f"/agent/v1/{name}", data=body, timeout=limit) as reply:
                content = await reply.read()
                status = reply.status
        except FAILURES as error:
            raise RequestRefused(f"{name}: {type(error).__name__}") from None
        if status >= 300:
            raise RequestRefused(f"{name}: {status}")
        return content
