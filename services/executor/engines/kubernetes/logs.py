"""Output of pods: one stream of the log of each worker, of which a bounded part is held."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress

from services.executor.core.engines.output_lines import line_text
from services.executor.core.kubernetes.names import WORKER
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.api import ApiRefusal, KubernetesApi

END_S = 2.0
"""Longest wait for the end of the log of a container that has ended."""
HELD_BYTES = 512 * 1024
CHUNK_BYTES = 64 * 1024
TAIL_LINES, TAIL_BYTES, TAIL_CHARS = 20, 8192, 512


def log_path(pod: PodSeen) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"


class _Stream:
    """The log of one pod from a byte on, as far as it came."""

    def __init__(self, api: KubernetesApi, pod: PodSeen, offset: int) -> None:
        self.offset = offset
        """Place in the log of the first byte that is held."""
        self.held = bytearray()
        self.is_complete = False
        """Whether the log came to its end."""
        self._room = asyncio.Event()
        self.task = asyncio.create_task(self._follow(api, pod, offset))

    async def _follow(self, api: KubernetesApi, pod: PodSeen, skip: int) -> None:
        with suppress(EngineAway, ApiRefusal):
            query = {"container": WORKER, "follow": "true"}
            async with api.stream(log_path(pod), query, CHUNK_BYTES) as response:
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    rest = chunk[skip:]
                    skip -= len(chunk) - len(rest)
                    self.held += rest
                    while len(self.held) >= HELD_BYTES:
                        self._room.clear()
                        await self._room.wait()
            self.is_complete = True

    def take(self, offset: int) -> bytes:
        """Return what is held from that place on, and drop what lies before it."""
        del self.held[: max(0, offset - self.offset)]
        self.offset = max(self.offset, offset)
        self._room.set()
        return bytes(self.held)


class PodLogs:
    """Follows the logs of pods that are read."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._streams: dict[str, _Stream] = {}
        self._tails: dict[str, tuple[str, ...]] = {}

    async def read(self, pod: PodSeen, offset: int) -> bytes:
        """Return output of a worker from that byte on, as far as it came."""
        if pod.phase == "Pending":
            return b""
        stream = self._streams.get(pod.uid)
        if stream is None or stream.offset > offset:
            self._drop(pod.uid)
            stream = self._streams[pod.uid] = _Stream(self._api, pod, offset)
        output = stream.take(offset)
        if not output and pod.is_over:
            await asyncio.wait([stream.task], timeout=END_S)
            output = stream.take(offset)
        if not output and stream.task.done() and not (pod.is_over and stream.is_complete):
            self._drop(pod.uid)
        return output

    async def tail(self, pod: PodSeen) -> tuple[str, ...]:
        """Return the last lines of a worker that has ended, read once. Raises EngineAway."""
        if pod.uid not in self._tails:
            self._tails[pod.uid] = await self._read_tail(pod)
        return self._tails[pod.uid]

    async def _read_tail(self, pod: PodSeen) -> tuple[str, ...]:
        query = {"container": WORKER, "tailLines": str(TAIL_LINES), "limitBytes": str(TAIL_BYTES)}
        try:
            text = await self._api.read_bytes(log_path(pod), TAIL_BYTES, **query)
        except (ApiRefusal, EngineAway):
            # The kubelet is away, or has no log of it: the end is reported without.
            return ()
        lines = text.removesuffix(b"\n").split(b"\n")
        texts = [line_text(line)[:TAIL_CHARS] for line in lines[-TAIL_LINES:]]
        return tuple(texts) if any(texts) else ()

    def keep(self, uids: Collection[str]) -> None:
        """Drop what is held of other pods."""
        for uid in [uid for uid in self._streams if uid not in uids]:
            self._drop(uid)
        self._tails = {uid: lines for uid, lines in self._tails.items() if uid in uids}

    def _drop(self, uid: str) -> None:
        stream = self._streams.pop(uid, None)
        if stream is not None:
            stream.task.cancel()
