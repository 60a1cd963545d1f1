"""Pods that their tenant created become the workers of a gang, and are given back at its end.

Each change names the version of the pod that was read for it: of two that adopt a pod at once, one
does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.adoption import (
    Unadoptable,
    adoption_change,
    pods_by_rank,
    release_change,
)
from services.executor.core.kubernetes.gangs import KubernetesGang
from services.executor.core.kubernetes.nodes import Toleration
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.core.kubernetes.records import (
    OPEN,
    STARTED,
    new_record,
    record_manifest,
    record_of,
)
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.api import CONFLICT, NOT_FOUND, ApiRefusal, KubernetesApi
from services.executor.engines.kubernetes.creation import ensure
from services.executor.engines.kubernetes.together import together
from shared.contracts.failures import Failure


class PodAdoption:
    """`records` is the path of the records, `namespace_of` takes a tenant."""

    def __init__(
        self,
        api: KubernetesApi,
        records: str,
        namespace_of: Callable[[str], str],
        tolerations: tuple[Toleration, ...],
    ) -> None:
        self._api = api
        self._records = records
        self._namespace_of = namespace_of
        self._tolerations = tolerations

    async def adopt(
        self, gang: EngineGang, pods: Mapping[tuple[str, str], PodSeen], seen: KubernetesGang | None
    ) -> Failure | None:
        """Create the record of a gang, and write into its pods that they are of it.

        A gang that is decided adopts none: this executor may be late. `seen` has pods where the API
        has no record of them.
        """
        namespace = self._namespace_of(gang.launch.tenant)
        decided = STARTED if seen is not None and seen.has_begun else OPEN
        try:
            members = pods_by_rank(gang, namespace, pods.values())
            names = tuple(pod.name for pod in members)
            new = new_record(gang.identity, namespace, gang.launch.world_size, decided, names)
            record = record_of(await ensure(self._api, self._records, record_manifest(new)))
            if record.decided == OPEN:
                await together(self._mark(gang, rank, pod) for rank, pod in enumerate(members))
        except Unadoptable as error:
            return Failure(reason="engine_cancelled", detail=str(error)[:1024], permanent=True)
        except ApiRefusal as error:
            if error.status in (NOT_FOUND, CONFLICT):
                raise EngineAway(f"{error.status}: {error}") from None
            return Failure(reason="engine_refused", detail=f"Kubernetes: {error}"[:1024])
        return None

    async def _mark(self, gang: EngineGang, rank: int, pod: PodSeen) -> None:
        """Make a pod the worker of a rank. Raises Unadoptable and ApiRefusal."""
        try:
            row = await self._api.read(path_of(pod))
        except ApiRefusal as error:
            if error.status == NOT_FOUND:
                raise Unadoptable(f"pod {pod.namespace}/{pod.name} is gone") from None
            raise
        change = adoption_change(row, gang, rank, self._tolerations)
        if change:
            await self._api.patch(path_of(pod), change)


async def release(api: KubernetesApi, pod: PodSeen) -> None:
    """Take out of a pod what makes it Berth's: without a node it waits again. Raises ApiRefusal."""
    row: dict[str, Any] = await api.read(path_of(pod))
    change = release_change(row, pod.uid)
    if change:
        await api.patch(path_of(pod), change)


def path_of(pod: PodSeen) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
