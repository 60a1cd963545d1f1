"""Requests to the dashboard of a Ray cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from services.executor.engines.engine import EngineAway

LIMIT_S = 20.0
MOST_ROWS = 10_000
"""Most that Ray lists of a kind."""
AT_ONCE = 16
"""Most requests in flight: a gang of many workers is as many jobs."""
BAD_REQUEST, NOT_FOUND = 400, 404
TAKEN, UNKNOWN = "already exists", "does not exist"
"""Words of answers about an id that a job has, and about one that no job has."""

Row = dict[str, Any]


class RayRefusal(Exception):
    """Ray does not take this job; the text is Ray's."""


class RayApi:
    """One client of a cluster, of which `address` is the URL of the dashboard.

    The token is read again for each request, as it may be exchanged.
    """

    def __init__(self, address: str, token_file: Path | None = None) -> None:
        self._address = address
        self._token_file = token_file
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def jobs(self) -> list[Row]:
        """Return all jobs that were submitted to Ray and are not deleted."""
        answer = await self._request("GET", "/api/jobs/")
        try:
            return [row for row in answer if row.get("submission_id")]
        except (AttributeError, TypeError):
            raise EngineAway(f"jobs: {str(answer)[:200]}; a list of objects is expected") from None

    async def listed(self, kind: str, *filters: tuple[str, str]) -> list[Row]:
        """Return the objects of a kind by Ray's state API, with their details."""
        query = [("detail", "1"), ("limit", str(MOST_ROWS))]
        for key, value in filters:
            query += [("filter_keys", key), ("filter_predicates", "="), ("filter_values", value)]
        answer = await self._request("GET", f"/api/v0/{kind}", query=query)
        try:
            rows: list[Row] = answer["data"]["result"]["result"]
        except (KeyError, TypeError):
            raise EngineAway(f"{kind}: {str(answer)[:200]}") from None
        return rows

    async def submit(self, request: Row) -> None:
        """Submit a job; one that is there already is left as it is. Raises RayRefusal."""
        await self._request("POST", "/api/jobs/", request)

    async def stop(self, job: str) -> None:
        """Stop a job; one that Ray does not know needs nothing."""
        await self._request("POST", f"/api/jobs/{quote(job)}/stop")

    async def delete(self, job: str) -> None:
        """Have Ray forget a job that has ended."""
        await self._request("DELETE", f"/api/jobs/{quote(job)}")

    async def _request(
        self,
        method: str,
        path: str,
        body: Row | None = None,
        query: list[tuple[str, str]] | None = None,
    ) -> Any:
        """Return the answer, None where it was done before.

        Raises RayRefusal for a job that is at fault, and EngineAway where the outcome is unknown or
        the request was not allowed.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with (
                self._turn,
                asyncio.timeout(LIMIT_S),
                self._session.request(
                    method, self._address + path, json=body, params=query, headers=self._headers()
                ) as response,
            ):
                if response.status < BAD_REQUEST:
                    return await response.json(content_type=None)
                words = await response.text()
        except TimeoutError:
            raise EngineAway(f"{method} {path}: no answer within {LIMIT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise EngineAway(f"{method} {path}: {error or type(error).__name__}") from None
        # Releases differ in the status of an id that is taken: 400, or 500 with the same words.
        if TAKEN in words or (response.status == NOT_FOUND and UNKNOWN in words):
            return None
        if response.status == BAD_REQUEST and body is not None:
            raise RayRefusal(_last_line(words))
        raise EngineAway(f"{method} {path}: {response.status} {_last_line(words)}")

    def _headers(self) -> dict[str, str]:
        """Return the headers of a request. Raises OSError where the token cannot be read."""
        if self._token_file is None:
            return {}
        return {"Authorization": f"Bearer {self._token_file.read_text().strip()}"}


def _last_line(text: str) -> str:
    """Return the last line of what may be a traceback."""
    return (text.strip().splitlines() or [""])[-1][:512]
