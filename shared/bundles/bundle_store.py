"""Stores the bundles of tenants' jobs: in a folder, or in a bucket of S3.

An object is `<tenant>/<kind>/<sha256>`: tenants share none, as equal ones would show what others
have. Objects that are not used for a while go: uploads, submissions and starts of jobs renew them.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from pydantic import ValidationError

from shared.bus.clock import now_ms
from shared.contracts.bundles import NAME_PREFIX, Manifest
from shared.objects.objects import Objects, counted_bytes

Kind = Literal["parts", "manifests"]
RENEWED = timedelta(days=1)
"""Age after which an object is written again when it is used."""
AT_ONCE = 16
"""Requests to the store at the same time."""
NAME_BYTES = 67
"""Bytes of each part in a manifest."""


class StoredManifest(NamedTuple):
    """The head of a stored manifest."""

    parts: int
    """Parts that it may name at most, by its size."""
    is_old: bool
    """Whether it was not used for `RENEWED`."""


class BundleStore:
    """Bundles at a folder, or at an address `s3://BUCKET/PREFIX?...`; raises StoreUnreachable."""

    def __init__(self, address: str) -> None:
        self._objects = Objects(address, "bundles")

    async def stored(self, tenant: str, bundle: str) -> StoredManifest | None:
        """Return what is known of a bundle by its manifest, which is stored after its parts."""
        name = _name(tenant, "manifests", bundle.removeprefix(NAME_PREFIX))
        present = await self._objects.head(name)
        if present is None:
            return None
        is_old = present["last_modified"] < _now() - RENEWED
        return StoredManifest(-(-present["size"] // NAME_BYTES), is_old)

    async def renew(self, tenant: str, bundle: str) -> bool:
        """Write again what was not used for long of a bundle; return whether nothing is missing."""
        oldest, places = _now() - RENEWED, asyncio.Semaphore(AT_ONCE)
        manifest = await self._read_manifest(tenant, bundle)
        if manifest is None:
            return False

        async def is_there(part: str) -> bool:
            async with places:
                present = await self._objects.head(_name(tenant, "parts", part))
                if present is None or present["last_modified"] >= oldest:
                    return present is not None
                return await self.part(tenant, part) is not None

        if not all(await asyncio.gather(*map(is_there, manifest.sizes))):
            return False
        # The manifest last: while it is old, the parts are looked for again.
        return await self.manifest(tenant, bundle) is not None

    async def has_part(self, tenant: str, sha256: str) -> bool:
        """Return whether a part is there."""
        return await self._objects.head(_name(tenant, "parts", sha256)) is not None

    async def missing(self, tenant: str, manifest: Manifest) -> list[str]:
        """Return the parts that are to be sent.

        These are not there, were not used for long, or have another size than the manifest says:
        damaged ones are sent again, and a manifest of other sizes is never complete.
        """
        oldest, places = _now() - RENEWED, asyncio.Semaphore(AT_ONCE)

        async def is_missing(part: str, size: int) -> bool:
            async with places:
                present = await self._objects.head(_name(tenant, "parts", part))
            return present is None or present["last_modified"] < oldest or present["size"] != size

        sizes = manifest.sizes
        answers = await asyncio.gather(*(is_missing(*item) for item in sizes.items()))
        return [part for part, is_gone in zip(sizes, answers, strict=True) if is_gone]

    async def put_part(self, tenant: str, body: bytes) -> None:
        """Store a part. Raises StoreFull."""
        await self._objects.check_free()
        await self._objects.put(_name(tenant, "parts", await _sha256(body)), body)

    async def put_manifest(self, tenant: str, manifest: Manifest) -> None:
        """Store a manifest, of which no part is missing. Raises StoreFull."""
        await self._objects.check_free()
        name = _name(tenant, "manifests", manifest.bundle.removeprefix(NAME_PREFIX))
        await self._objects.put(name, manifest.content)

    async def manifest(self, tenant: str, bundle: str) -> Manifest | None:
        """Return the manifest of a bundle, None where there is none."""
        return await self._read_manifest(tenant, bundle, is_use=True)

    async def _read_manifest(
        self, tenant: str, bundle: str, is_use: bool = False
    ) -> Manifest | None:
        sha256 = bundle.removeprefix(NAME_PREFIX)
        body = await self._get(tenant, "manifests", sha256, is_use)
        try:
            return None if body is None else Manifest.model_validate_json(body)
        except ValidationError:
            return None

    async def part(self, tenant: str, sha256: str) -> bytes | None:
        """Return a part, None where it is not there, or is damaged."""
        return await self._get(tenant, "parts", sha256)

    async def stored_bytes(self, tenant: str) -> int:
        """Return the bytes of the tenant's objects, as they count."""
        return sum([counted_bytes(item["size"]) async for item in self._objects.list(f"{tenant}/")])

    async def remove_unused(self, keep: timedelta) -> int:
        """Remove what was not used for this long; return the bytes that were freed."""
        if self._objects.is_absent:
            return 0
        oldest, freed = _now() - keep, 0
        # No manifest is left without its parts.
        for kind in ("manifests", "parts"):
            async for item in self._objects.list(""):
                if item["path"].split("/")[1:2] == [kind] and item["last_modified"] < oldest:
                    freed += await self._remove(item["path"], oldest)
        return freed

    async def _remove(self, name: str, oldest: datetime) -> int:
        """Remove an object that is still old, as it may have been used since it was listed."""
        present = await self._objects.head(name)
        if present is None or present["last_modified"] >= oldest:
            return 0
        return present["size"] if await self._objects.remove(name) else 0

    async def _get(self, tenant: str, kind: Kind, sha256: str, is_use: bool = True) -> bytes | None:
        """Return an object; a use writes it again where the last one is long ago."""
        name = _name(tenant, kind, sha256)
        stored = await self._objects.get(name)
        if stored is None:
            return None
        present, body = stored
        if await _sha256(body) != sha256:
            return None
        if is_use and present.meta["last_modified"] < _now() - RENEWED:
            await self._objects.put(name, body)
        return body


def _name(tenant: str, kind: Kind, sha256: str) -> str:
    return f"{tenant}/{kind}/{sha256}"


async def _sha256(body: bytes) -> str:
    return (await asyncio.to_thread(hashlib.sha256, body)).hexdigest()


def _now() -> datetime:
    return datetime.fromtimestamp(now_ms() / 1000, UTC)
