"""Objects of a gang are created once: one that is there already is taken as it is."""

from __future__ import annotations

from collections.abc import Awaitable

from services.executor.core.kubernetes.names import IDENTITY, RANK
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.api import (
    CONFLICT,
    NOT_FOUND,
    ApiRefusal,
    KubernetesApi,
    Row,
)


async def ensure(api: KubernetesApi, path: str, manifest: Row) -> Row:
    """Create an object of a gang, or return the one that is there already.

    Raises EngineAway, and ApiRefusal, also where one of its name has another identity.
    """
    created = await unless_there(api.create(path, manifest))
    if created is not None:
        return created
    name = manifest["metadata"]["name"]
    try:
        there = await api.read(f"{path}/{name}")
    except ApiRefusal as error:
        if error.status != NOT_FOUND:
            raise
        raise EngineAway(f"{name} was removed meanwhile") from None
    if _marks(there) != _marks(manifest):
        words = f"{manifest['kind']} {name} is there, and is none of Berth's"
        raise ApiRefusal(CONFLICT, "AlreadyExists", words)
    return there


async def unless_there(creation: Awaitable[Row]) -> Row | None:
    """Create an object; return None if one of its name is there already."""
    try:
        return await creation
    except ApiRefusal as error:
        if error.reason != "AlreadyExists":
            raise
        return None


def _marks(row: Row) -> tuple[str | None, ...]:
    """Return what an object of a gang is known by, beside its name."""
    annotations = row["metadata"].get("annotations") or {}
    return tuple(annotations.get(key) for key in (IDENTITY, RANK))
