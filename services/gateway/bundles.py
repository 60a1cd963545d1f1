"""The gateway's use of the store of bundles: bounds of tenants, and the removal of unused ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from services.gateway.problem import ApiError, unavailable
from services.gateway.settings import GatewaySettings
from shared.bundle_store import BundleStore, StoreUnreachable
from shared.contracts.bundles import Manifest

GIB = 2**30
COUNTED_S = 60.0
"""Time for which a count of a tenant's bytes is taken for right, but for what comes meanwhile."""
FIRST_REMOVAL_S = 60.0
REMOVAL_S = 6 * 3600.0
MOST_TENANTS = 4096

log = logging.getLogger(__name__)
T = TypeVar("T")


class Bundles:
    """Bundles of tenants, within bounds; raises ApiError."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._store = BundleStore(settings.bundles) if settings.bundles else None
        self._most_bytes = round(settings.tenant_bundles_gib * GIB)
        self._keep = timedelta(days=settings.bundles_kept_d)
        self._counted: dict[str, tuple[float, int]] = {}

    async def has(self, tenant: str, bundle: str) -> bool:
        return await self._reach(lambda store: store.has(tenant, bundle))

    async def put_part(self, tenant: str, body: bytes) -> None:
        """Store a part. Raises a 409 above the tenant's bound."""
        stored = await self._stored_bytes(tenant)
        if stored + len(body) > self._most_bytes:
            detail = (
                f"bundles of tenant {tenant}: {stored / GIB:.2f} GiB; at most "
                f"{self._most_bytes / GIB:g} GiB are stored, each for {self._keep.days} days "
                "after its last use"
            )
            raise ApiError(409, "bundles_full", detail)
        await self._reach(lambda store: store.put_part(tenant, body))
        counted_s, count = self._counted[tenant]
        self._counted[tenant] = (counted_s, count + len(body))

    async def put_manifest(self, tenant: str, manifest: Manifest) -> list[str]:
        """Store a manifest, and return the parts that have to be sent before it is."""
        missing = await self._reach(lambda store: store.missing(tenant, manifest.parts))
        if not missing:
            await self._reach(lambda store: store.put_manifest(tenant, manifest))
        return missing

    async def run(self) -> None:
        """Remove what is not used any more, now and then."""
        if self._store is None:
            return
        pause_s = FIRST_REMOVAL_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = REMOVAL_S
            try:
                freed = await self._store.remove_unused(self._keep)
            except StoreUnreachable as error:
                log.warning("unused bundles cannot be removed", extra={"reason": str(error)})
                continue
            if freed:
                log.info("removed bundles that were not used", extra={"bytes": freed})
                self._counted.clear()

    async def _stored_bytes(self, tenant: str) -> int:
        now_s = asyncio.get_running_loop().time()
        counted_s, count = self._counted.get(tenant, (-COUNTED_S, 0))
        if now_s - counted_s >= COUNTED_S:
            count = await self._reach(lambda store: store.stored_bytes(tenant))
            if len(self._counted) >= MOST_TENANTS:
                self._counted.clear()
            self._counted[tenant] = (now_s, count)
        return count

    async def _reach(self, request: Callable[[BundleStore], Awaitable[T]]) -> T:
        if self._store is None:
            raise unavailable("no_bundles", "BERTH_BUNDLES of the gateway is not set")
        try:
            return await request(self._store)
        except StoreUnreachable as error:
            # Its place is of no concern to the tenant.
            log.warning("bundles cannot be reached", extra={"reason": str(error)})
            detail = "bundles cannot be stored or read now"
            raise unavailable("bundles_unreachable", detail) from None
