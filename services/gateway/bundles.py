"""The gateway's use of the store of bundles: bounds of tenants, and the removal of unused ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic_ns
from typing import TypeVar

from services.gateway.responses.problem import ApiError, limited, unavailable
from services.gateway.settings import GatewaySettings
from shared.bundles.bundle_store import BundleStore
from shared.contracts.bundles import Manifest
from shared.http.rate import NS, Rate, TokenBuckets
from shared.objects.objects import GIB, StoreFull, StoreUnreachable, counted_bytes

COUNTED_S = 60.0
"""Time for which a count of a tenant's bytes is taken for right, but for what comes meanwhile."""
COUNTING_SHARE = 0.05
"""Share of the time that counts of one tenant take at most: a long one is right for longer."""
PARTS = Rate(256, 8192)
"""Parts of a tenant that are looked for: a short request names up to 1024."""
TURNS = 4
"""Requests that look for parts at the same time; one of each tenant."""
FIRST_REMOVAL_S = 60.0
REMOVAL_S = 6 * 3600.0
MOST_TENANTS = 4096

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class Usage:
    """The bytes that a tenant stores."""

    stored_bytes: int = 0
    right_until_s: float = 0.0
    counting: asyncio.Lock = field(default_factory=asyncio.Lock)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Bundles:
    """Bundles of tenants, within bounds; raises ApiError."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._store = BundleStore(settings.bundles) if settings.bundles else None
        self._most_bytes = round(settings.tenant_bundles_gib * GIB)
        self._keep = timedelta(days=settings.bundles_kept_d)
        self._usages: dict[str, Usage] = {}
        self._parts = TokenBuckets(PARTS)
        self._turns = asyncio.Semaphore(TURNS)

    async def has(self, tenant: str, bundle: str) -> bool:
        """Return whether the bundle is there; one that was not used for long is renewed.

        Raises a 429 for more parts than the tenant's rate.
        """
        stored = await self._reach(lambda store: store.stored(tenant, bundle))
        if stored is None or not stored.is_old:
            return stored is not None
        async with self._turn(tenant, stored.parts):
            return await self._reach(lambda store: store.renew(tenant, bundle))

    async def put_part(self, tenant: str, sha256: str, body: bytes) -> None:
        """Store a part. Raises a 409 above the tenant's bound."""
        is_new = not await self._reach(lambda store: store.has_part(tenant, sha256))
        await self._take_room(tenant, len(body) if is_new else 0)
        await self._reach(lambda store: store.put_part(tenant, body))

    async def put_manifest(self, tenant: str, manifest: Manifest) -> list[str]:
        """Store a manifest, and return the parts that have to be sent before it is.

        Raises a 409 above the tenant's bound, a 429 for more parts than its rate.
        """
        async with self._turn(tenant, len(manifest.parts)):
            missing = await self._reach(lambda store: store.missing(tenant, manifest))
        if not missing:
            stored = await self._reach(lambda store: store.stored(tenant, manifest.bundle))
            await self._take_room(tenant, 0 if stored else len(manifest.content))
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
                for usage in self._usages.values():
                    usage.right_until_s = 0.0

    @asynccontextmanager
    async def _turn(self, tenant: str, parts: int) -> AsyncIterator[None]:
        """Wait for the other requests that look for parts. Raises a 429."""
        now_ns = monotonic_ns()
        if wait_ns := self._parts.wait_ns(tenant, now_ns):
            raise limited(f"parts of the bundles of tenant {tenant}", PARTS, wait_ns / NS)
        self._parts.spend(tenant, now_ns, parts)
        async with self._usage(tenant).turn, self._turns:
            yield

    async def _take_room(self, tenant: str, new_bytes: int) -> None:
        """Count an object before it is stored, so that those of other requests find no room.

        Nothing is new of an object that is there already: 0 bytes.
        """
        if not new_bytes:
            return
        usage = self._usage(tenant)
        await self._count(tenant, usage)
        if usage.stored_bytes + counted_bytes(new_bytes) > self._most_bytes:
            detail = (
                f"bundles of tenant {tenant}: {usage.stored_bytes / GIB:.2f} GiB; at most "
                f"{self._most_bytes / GIB:g} GiB are stored, each for {self._keep.days} days "
                "after its last use"
            )
            raise ApiError(409, "bundles_full", detail)
        usage.stored_bytes += counted_bytes(new_bytes)

    def _usage(self, tenant: str) -> Usage:
        if tenant not in self._usages and len(self._usages) >= MOST_TENANTS:
            self._usages.clear()
        return self._usages.setdefault(tenant, Usage())

    async def _count(self, tenant: str, usage: Usage) -> None:
        """Count the tenant's bytes, unless a count is right still."""
        time = asyncio.get_running_loop().time
        async with usage.counting:
            began_s = time()
            if began_s >= usage.right_until_s:
                count = await self._reach(lambda store: store.stored_bytes(tenant))
                usage.stored_bytes = count
                usage.right_until_s = time() + max(COUNTED_S, (time() - began_s) / COUNTING_SHARE)

    async def _reach(self, request: Callable[[BundleStore], Awaitable[T]]) -> T:
        if self._store is None:
            raise unavailable("no_bundles", "BERTH_BUNDLES of the gateway is not set")
        try:
            return await request(self._store)
        except StoreFull as error:
            log.warning("bundles are refused: the disk is full", extra={"reason": str(error)})
            detail = "the disk of bundles has too little free space"
            raise unavailable("bundles_disk_full", detail) from None
        except StoreUnreachable as error:
            # Its place is of no concern to the tenant.
            log.warning("bundles cannot be reached", extra={"reason": str(error)})
            detail = "bundles cannot be stored or read now"
            raise unavailable("bundles_unreachable", detail) from None
