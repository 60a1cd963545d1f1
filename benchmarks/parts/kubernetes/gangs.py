"""Gangs of pods as users create them, and what became of them, by a watch of their pods."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from benchmarks.parts.kubernetes.fake_cluster import NAMESPACE
from services.executor.core.kubernetes.names import GPU
from services.executor.core.kubernetes.pod_requests import GROUP, GROUP_SIZE
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.together import together
from services.executor.engines.kubernetes.watched import Watched

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
STEP_S = 0.1


@dataclass(frozen=True, slots=True)
class PodGang:
    """A gang of equal pods."""

    name: str
    workers: int
    gpus: int

    def pods(self, scheduler: str) -> Iterator[dict[str, Any]]:
        """Yield its pods; the label and the size mean something to Berth alone."""
        resources = {"limits": {GPU: str(self.gpus)}, "requests": {"cpu": "1", "memory": "1Gi"}}
        for rank in range(self.workers):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{self.name}-{rank}",
                    "labels": {GROUP: self.name},
                    "annotations": {GROUP_SIZE: str(self.workers)},
                },
                "spec": {
                    "schedulerName": scheduler,
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "none", "resources": resources}],
                },
            }


@dataclass(slots=True)
class PodTimes:
    """When each pod was created, and first seen with a node: s of a clock that does not step."""

    created_s: dict[str, float] = field(default_factory=dict)
    bound_s: dict[str, float] = field(default_factory=dict)

    def note(self, row: dict[str, Any]) -> bool:
        """Take a pod of the watch; return whether it has a node."""
        name = row["metadata"]["name"]
        is_bound = bool(row["spec"].get("nodeName"))
        if is_bound:
            self.bound_s.setdefault(name, time.monotonic())
        return is_bound


class PodWatch:
    """The pods of the namespace, as long as it is watched."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self.times = PodTimes()
        self.pods: Watched[bool] = Watched(api, PODS, self.times.note)

    async def create(self, pods: Iterable[dict[str, Any]]) -> None:
        await together(map(self._create, pods))

    async def _create(self, pod: dict[str, Any]) -> None:
        self.times.created_s[pod["metadata"]["name"]] = time.monotonic()
        await self._api.create(PODS, pod)

    async def until_bound(self, number: int, longest_s: float, quiet_s: float) -> int:
        """Wait until so many pods have a node, or for so long none more gets one.

        Return how many have.
        """
        ends_s = time.monotonic() + longest_s
        seen, changed_s = -1, time.monotonic()
        while (bound := sum(self.pods.items.values())) < number:
            now_s = time.monotonic()
            if bound != seen:
                seen, changed_s = bound, now_s
            if now_s > ends_s or (bound and now_s - changed_s > quiet_s):
                break
            await asyncio.sleep(STEP_S)
        return bound

    async def remove(self, longest_s: float) -> None:
        """Delete all pods, and wait until none is left. Raises TimeoutError."""
        options = {"gracePeriodSeconds": 1}
        names = [name for _, name in self.pods.items]
        await together(self._api.delete(f"{PODS}/{name}", options) for name in names)
        async with asyncio.timeout(longest_s):
            while self.pods.items:
                await asyncio.sleep(STEP_S)
        self.times.created_s.clear()
        self.times.bound_s.clear()

    def bound_by_gang(self) -> Counter[str]:
        """Return how many pods of each gang have a node."""
        names = (name for (_, name), is_bound in self.pods.items.items() if is_bound)
        return Counter(name.rpartition("-")[0] for name in names)


@asynccontextmanager
async def watched_pods(api: KubernetesApi) -> AsyncIterator[PodWatch]:
    watch = PodWatch(api)
    task = asyncio.create_task(watch.pods.run())
    try:
        while watch.pods.problem:
            await asyncio.sleep(STEP_S)
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def interleaved(gangs: Iterable[PodGang], scheduler: str) -> Iterator[dict[str, Any]]:
    """Yield the pods of gangs in turn, as those of jobs come that are created at one time."""
    for row in zip(*(gang.pods(scheduler) for gang in gangs), strict=True):
        yield from row
