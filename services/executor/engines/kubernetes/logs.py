"""Output of pods: one stream of the log of each worker, of which a bounded part is held."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from time import monotonic

from services.executor.core.engines.output_lines import TAIL_BYTES, TAIL_LINES, last_lines
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.core.kubernetes.timed_log import TimedLog
from services.executor.engines.engine import EngineAway, OutputUnreadable
from services.executor.engines.kubernetes.api import ApiRefusal, KubernetesApi

TAIL_S = 5.0
"""Longest time in which the last lines of a container that has ended are read."""
TAIL_WAIT_S = 0.2
"""Longest wait of a look for new ones; usually they are there by then."""
QUIET_S = 1.0
"""Time after the last start of a gang from which new streams are opened at once."""
LONGEST_WAIT_S = 10.0
"""Longest time for which the first request for a log waits because gangs are started."""
HELD_BYTES = 512 * 1024
CHUNK_BYTES = 64 * 1024


def log_path(pod: PodSeen) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"


class _Stream:
    """The output of one pod from a byte on, as far as it came.

    A stream that breaks is opened again from the time of the last line on.
    """

    def __init__(self, api: KubernetesApi, pod: PodSeen, offset: int) -> None:
        self.offset = offset
        """Place in the output of the first byte that is held."""
        self.held = bytearray()
        self.is_complete = False
        """Whether the log came to its end."""
        self.problem = ""
        """Why the last stream could not be opened; empty if it was."""
        self._api = api
        self._pod = pod
        self._lines = TimedLog(offset)
        self._room = asyncio.Event()
        self.is_open = False
        """Whether the kubelet answered the last request for the log."""
        self.task = asyncio.create_task(self._follow())

    def reopen(self) -> None:
        """Follow a log on that broke, or came to its end while its container ran."""
        self.is_complete = False
        self.task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Follow the log to its end, or until the stream breaks."""
        self.problem, self.is_open = "", False
        try:
            await self._open()
        except (EngineAway, ApiRefusal) as error:
            # One that breaks while its program prints nothing is only opened again.
            self.problem = "" if self.is_open else str(error)

    async def _open(self) -> None:
        query = {"container": self._pod.container, "follow": "true", "timestamps": "true"}
        if since := self._lines.begin():
            query["sinceTime"] = since
        async with self._api.stream(log_path(self._pod), query, CHUNK_BYTES, None) as response:
            self.is_open = True
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                self.held += self._lines.take(chunk)
                while len(self.held) >= HELD_BYTES:
                    self._room.clear()
                    await self._room.wait()
        self.held += self._lines.end()
        self.is_complete = True

    def take(self, offset: int) -> bytes:
        """Return what is held from that place on, and drop what lies before it."""
        del self.held[: max(0, offset - self.offset)]
        self.offset = max(self.offset, offset)
        self._room.set()
        return bytes(self.held)


class PodLogs:
    """Follows the logs of pods that are read.

    A stream costs the API a connection to a kubelet, so gangs that are started come first: no line
    is lost by the wait, as the kubelet has them all.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._streams: dict[str, _Stream] = {}
        self._tails: dict[str, asyncio.Task[tuple[str, ...]]] = {}
        self._busy_until_s = 0.0
        self._waits_since_s: dict[str, float] = {}

    def let_wait(self) -> None:
        """Open no new stream for a moment, as a gang is started now."""
        self._busy_until_s = monotonic() + QUIET_S

    def read(self, pod: PodSeen, offset: int) -> bytes | None:
        """Return output of a worker from that byte on, as far as it came.

        None where it has ended and the rest is not there yet, or no kubelet has answered yet.
        Raises OutputUnreadable where the last stream brought nothing; by then the next is begun.
        """
        if pod.phase == "Pending":
            return b""
        stream = self._streams.get(pod.uid)
        if stream is None and self._waits(pod.uid):
            return None if pod.is_over else b""
        if stream is None or stream.offset > offset:
            self._drop(pod.uid)
            stream = self._streams[pod.uid] = _Stream(self._api, pod, offset)
        output = stream.take(offset)
        if output or (pod.is_over and stream.is_complete):
            return output
        if stream.task.done():
            problem = stream.problem
            stream.reopen()
            if problem:
                raise OutputUnreadable(problem)
        return None if pod.is_over or not stream.is_open else b""

    def _waits(self, uid: str) -> bool:
        """Return whether the first stream of a pod waits for gangs that are started."""
        now_s = monotonic()
        since_s = self._waits_since_s.setdefault(uid, now_s)
        return now_s < min(self._busy_until_s, since_s + LONGEST_WAIT_S)

    async def tails(self, pods: Iterable[PodSeen]) -> dict[str, tuple[str, ...]]:
        """Return the last lines of workers that have ended, by uid, as far as they are read."""
        begun = []
        uids = []
        for pod in pods:
            uids.append(pod.uid)
            if pod.uid not in self._tails:
                self._tails[pod.uid] = asyncio.create_task(self._read_tail(pod))
                begun.append(self._tails[pod.uid])
        if begun:
            await asyncio.wait(begun, timeout=TAIL_WAIT_S)
        return {uid: self._tails[uid].result() for uid in uids if self._tails[uid].done()}

    async def _read_tail(self, pod: PodSeen) -> tuple[str, ...]:
        query = {
            "container": pod.container,
            "tailLines": str(TAIL_LINES),
            "limitBytes": str(TAIL_BYTES),
        }
        try:
            async with asyncio.timeout(TAIL_S):
                output = await self._api.read_bytes(log_path(pod), TAIL_BYTES, **query)
        except (ApiRefusal, EngineAway, TimeoutError):
            # The kubelet is away, or has no log of it: the end is reported without.
            return ()
        return last_lines(output)

    def keep(self, uids: Collection[str]) -> None:
        """Drop what is held of other pods."""
        for uid in [uid for uid in self._streams if uid not in uids]:
            self._drop(uid)
        for uid in self._waits_since_s.keys() - set(uids):
            del self._waits_since_s[uid]
        for uid in [uid for uid in self._tails if uid not in uids]:
            self._tails.pop(uid).cancel()

    def _drop(self, uid: str) -> None:
        stream = self._streams.pop(uid, None)
        if stream is not None:
            stream.task.cancel()
