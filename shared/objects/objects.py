"""Objects by name, in a folder or in a bucket of S3, that can be replaced and removed."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shared.bus.archive.s3_address import PREFIX, BadArchiveAddress, parse_s3
from shared.ledger.errors import ArchiveUnreachable

if TYPE_CHECKING:
    from obstore import GetResult, ObjectMeta
    from obstore.store import ObjectStore

PAGE = 1000
"""Objects of a list that are in memory at the same time."""
BLOCK_BYTES = 4096
"""Bytes for which an object counts at least, which bounds their number."""
GIB = 2**30
LEAST_FREE_BYTES = 4 * GIB
LEAST_FREE_SHARE = 0.05
"""A folder's disk keeps this share of it free, `LEAST_FREE_BYTES` at most."""
FOLDER_MODE = 0o700


class StoreUnreachable(Exception):
    """The folder or the bucket cannot be used now; the text names it and the reason."""


class StoreFull(Exception):
    """The disk of the folder has too little free space for more; the text says how much."""


class Objects:
    """Objects at a folder, or at an address `s3://BUCKET/PREFIX?...`; raises StoreUnreachable.

    `kind` names them in errors. A reader makes no folder: what is not there has no objects.
    """

    def __init__(self, address: str, kind: str, *, writes: bool = True) -> None:
        self._address = address
        self._kind = kind
        self._writes = writes
        self._opened: ObjectStore | None = None

    @property
    def is_folder(self) -> bool:
        return not self._address.startswith(PREFIX)

    @property
    def is_absent(self) -> bool:
        """Return whether the folder does not exist."""
        return self.is_folder and not Path(self._address).is_dir()

    async def head(self, name: str) -> ObjectMeta | None:
        with self._reaching():
            try:
                return await (await self._store()).head_async(name)
            except FileNotFoundError:
                return None

    async def get(self, name: str) -> tuple[GetResult, bytes] | None:
        with self._reaching():
            try:
                present = await (await self._store()).get_async(name)
                return present, bytes(await present.bytes_async())
            except FileNotFoundError:
                return None

    async def put(self, name: str, body: bytes) -> None:
        """Store an object in place of one of this name, if there is one."""
        with self._reaching():
            await (await self._store()).put_async(name, body, use_multipart=False)

    async def remove(self, name: str) -> bool:
        """Remove an object; return False where another process has."""
        with self._reaching():
            try:
                await (await self._store()).delete_async(name)
            except FileNotFoundError:
                return False
        return True

    async def list(self, prefix: str) -> AsyncIterator[ObjectMeta]:
        """Yield what is stored below a prefix of whole parts; a page of it is in memory."""
        if not self._writes and self.is_absent:
            return
        with self._reaching():
            async for page in (await self._store()).list(prefix, chunk_size=PAGE):
                for item in page:
                    yield item

    async def check_free(self) -> None:
        """Raise StoreFull where other data of the disk needs what is left of it."""
        if not self.is_folder:
            return
        with self._reaching():
            await self._store()
            disk = await asyncio.to_thread(shutil.disk_usage, self._address)
        least = min(LEAST_FREE_BYTES, disk.total * LEAST_FREE_SHARE)
        if disk.free < least:
            raise StoreFull(f"{disk.free / GIB:.1f} GiB free; {least / GIB:.1f} GiB are left free")

    async def _store(self) -> ObjectStore:
        if self._opened is None:
            self._opened = await asyncio.to_thread(_open, self._address, self._writes)
        return self._opened

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, BadArchiveAddress, ArchiveUnreachable) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:500]
            raise StoreUnreachable(f"{self._kind}: {reason}") from None


def counted_bytes(size: int) -> int:
    """Return the bytes for which an object of this size counts: the blocks of a disk."""
    return max(1, -(-size // BLOCK_BYTES)) * BLOCK_BYTES


def _open(address: str, writes: bool) -> ObjectStore:
    if address.startswith(PREFIX):
        from shared.bus.archive.s3_store import client_of

        return client_of(parse_s3(address))
    from obstore.store import LocalStore

    folder = Path(address)
    if writes:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        os.chmod(folder, FOLDER_MODE)
    return LocalStore(folder, automatic_cleanup=writes, mkdir=False)
