"""Pods that their tenant created become the workers of a gang, and are given back at its end.

Each change names the version of the pod that it was made for: of two that adopt a pod at once, one
does. That version is the watch's, so most changes are one request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.adoption import (
    Unadoptable,
    adoption_change,
    pods_by_rank,
    release_change,
)
from services.executor.core.kubernetes.gangs import KubernetesGang
from services.executor.core.kubernetes.nodes import Toleration
from services.executor.core.kubernetes.pods import PodSeen, pod_of
from services.executor.core.kubernetes.records import (
    OPEN,
    STARTED,
    new_record,
    record_manifest,
    record_of,
)
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.api import (
    CONFLICT,
    NOT_FOUND,
    ApiRefusal,
    KubernetesApi,
    Row,
)
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

        def change(of: PodSeen) -> Row:
            return adoption_change(of, gang, rank, self._tolerations)

        try:
            await _changed(self._api, pod, change)
        except ApiRefusal as error:
            if error.status == NOT_FOUND:
                raise Unadoptable(f"pod {pod.namespace}/{pod.name} is gone") from None
            raise


async def release(api: KubernetesApi, pod: PodSeen) -> None:
    """Take out of a pod what makes it Berth's: without a node it waits again. Raises ApiRefusal."""
    await _changed(api, pod, lambda of: release_change(of, pod.uid))


async def _changed(api: KubernetesApi, pod: PodSeen, change: Callable[[PodSeen], Row]) -> None:
    """Change a pod as the watch has it, else, where that is old, as the API has it."""
    try:
        if first := change(pod):
            await api.patch(path_of(pod), first)
            return
    except ApiRefusal as error:
        if error.status != CONFLICT:
            raise
    if again := change(pod_of(await api.read(path_of(pod)))):
        await api.patch(path_of(pod), again)


def path_of(pod: PodSeen) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
