"""Health and load of an upstream, read at intervals from the engine itself."""

from __future__ import annotations

import asyncio
import logging

import aiohttp

from services.throttle.upstreams.metrics_text import UNKNOWN, EngineFigures, parse_figures
from services.throttle.upstreams.request_errors import failure_of_error
from services.throttle.upstreams.upstream import PooledUpstream

log = logging.getLogger(__name__)

PROBE_S = 2.0
"""Pause between two probes: llama.cpp serves no request while it writes its metrics."""
PROBE_TIMEOUT_S = 2.0
HEALTH_PATHS = ("/health", "/v1/models")
MISSING = frozenset({404, 405, 501})
MAX_METRICS_BYTES = 4 * 1024 * 1024
MAX_HEALTH_BYTES = 64 * 1024
SILENT_PROBES = 3
"""Probes without an answer in a row that make it unhealthy: a busy engine misses some."""
METRICS_RETRY = 30
"""Probes after which an engine without metrics is read again."""


class UpstreamProbe:
    """The probes of one upstream, and what it has learned about the engine's paths."""

    def __init__(self, upstream: PooledUpstream) -> None:
        self.upstream = upstream
        self._health_path = HEALTH_PATHS[0]
        self._silent = 0
        self._without_metrics = 0

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Probe once; the upstream has the results."""
        before, reason = self.upstream.health_reason, await self._health(session)
        self.upstream.health_reason = reason
        if reason != before:
            log.warning(
                "upstream %s: %s", self.upstream.settings.url, reason or "health: well again"
            )
        if self._without_metrics:
            self._without_metrics -= 1
            return
        self.upstream.set_figures(await self._figures(session))

    async def _health(self, session: aiohttp.ClientSession) -> str:
        try:
            status, _ = await self._get(session, self._health_path, MAX_HEALTH_BYTES)
            if status in MISSING and self._health_path == HEALTH_PATHS[0]:
                self._health_path = HEALTH_PATHS[1]
                status, _ = await self._get(session, self._health_path, MAX_HEALTH_BYTES)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return self._unreached(error)
        self._silent = 0
        # 429 comes from an engine that is well; its breaker knows of requests that it refuses.
        is_healthy = 200 <= status < 300 or status == 429
        return "" if is_healthy else f"health: status {status}"

    def _unreached(self, error: Exception) -> str:
        failure = failure_of_error(error)
        if failure.verdict == "down":
            return f"health: {failure.reason}"
        self._silent += 1
        if self._silent < SILENT_PROBES:
            return self.upstream.health_reason
        return f"health: {failure.reason}"

    async def _figures(self, session: aiohttp.ClientSession) -> EngineFigures:
        try:
            status, body = await self._get(session, "/metrics", MAX_METRICS_BYTES)
        except (aiohttp.ClientError, OSError, ValueError):
            return UNKNOWN
        if status in MISSING:
            self._without_metrics = METRICS_RETRY
        if status != 200 or len(body) > MAX_METRICS_BYTES:
            return UNKNOWN
        return parse_figures(body.decode("utf-8", "replace"))

    async def _get(
        self, session: aiohttp.ClientSession, path: str, limit: int
    ) -> tuple[int, bytes]:
        """Return status and body; a body that is longer than the limit is cut after it."""
        upstream, body = self.upstream, bytearray()
        async with (
            asyncio.timeout(PROBE_TIMEOUT_S),
            session.get(
                upstream.url(path), headers=upstream.headers, allow_redirects=False
            ) as response,
        ):
            while len(body) <= limit and (chunk := await response.content.readany()):
                body += chunk
            return response.status, bytes(body)


async def put_document(
    session: aiohttp.ClientSession, upstream: PooledUpstream, path: str, body: bytes
) -> int:
    """Put a body at a path of the engine; return the status, 0 without an answer in time."""
    try:
        async with (
            asyncio.timeout(PROBE_TIMEOUT_S),
            session.put(
                upstream.url(path), data=body, headers=upstream.headers, allow_redirects=False
            ) as response,
        ):
            return response.status
    except (aiohttp.ClientError, OSError, ValueError):
        return 0
