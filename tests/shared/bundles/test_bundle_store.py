"""The store of bundles: its objects are a tenant's, are checked, and go when nothing uses them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shared.bundles.bundle_store import RENEWED, BundleStore
from shared.contracts.bundles import PART_BYTES, Manifest
from shared.objects import objects
from shared.objects.objects import BLOCK_BYTES, Objects, StoreFull, StoreUnreachable
from tests import s3_server

if TYPE_CHECKING:
    from obstore import ObjectMeta

BODY = b"part" * 1000
PART = hashlib.sha256(BODY).hexdigest()
MANIFEST = Manifest(parts=(PART,), size_bytes=len(BODY))
LONG = RENEWED + timedelta(hours=1)
BUCKET = "berth-bundles"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bundles"


def age(folder: Path, by: timedelta) -> None:
    moment = time.time() - by.total_seconds()
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (moment, moment))


async def store_all(store: BundleStore, tenant: str = "ada") -> None:
    assert await store.missing(tenant, MANIFEST) == [PART]
    await store.put_part(tenant, BODY)
    assert await store.missing(tenant, MANIFEST) == []
    await store.put_manifest(tenant, MANIFEST)


async def check(store: BundleStore) -> None:
    """Check what holds for each kind of store."""
    assert await store.stored_bytes("ada") == 0
    await store_all(store)
    stored = await store.stored("ada", MANIFEST.bundle)
    assert stored is not None and not stored.is_old and stored.parts >= 1
    assert await store.manifest("ada", MANIFEST.bundle) == MANIFEST
    assert await store.part("ada", PART) == BODY
    assert await store.part("ada", "0" * 64) is None
    assert await store.stored("bob", MANIFEST.bundle) is None
    assert await store.missing("bob", MANIFEST) == [PART]
    assert await store.manifest("bob", MANIFEST.bundle) is None
    assert await store.stored_bytes("ada") == 2 * BLOCK_BYTES
    assert await store.remove_unused(timedelta(days=2)) == 0
    assert await store.remove_unused(timedelta(seconds=-60)) > 0
    assert await store.stored("ada", MANIFEST.bundle) is None


async def test_bundles_of_tenants_are_kept_apart_in_a_folder(folder: Path) -> None:
    await check(BundleStore(str(folder)))
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server.running(BUCKET) as endpoint:
        yield endpoint


@pytest.mark.parts
@pytest.mark.process
async def test_bundles_of_tenants_are_kept_apart_in_a_bucket(endpoint: str, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    address = f"s3://{BUCKET}/jobs?endpoint={endpoint}&credentials={credentials}"
    await check(BundleStore(address))


async def test_a_use_renews_what_is_old(folder: Path) -> None:
    store = BundleStore(str(folder))
    await store_all(store)
    age(folder, LONG)
    assert await store.missing("ada", MANIFEST) == [PART], "an upload renews it"
    assert await store.part("ada", PART) == BODY
    assert await store.missing("ada", MANIFEST) == [], "as does a start"
    assert await store.remove_unused(RENEWED) == len(MANIFEST.content)


async def test_a_damaged_object_is_missing(folder: Path) -> None:
    store = BundleStore(str(folder))
    await store_all(store)
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-1])
    assert await store.part("ada", PART) is None
    assert await store.manifest("ada", MANIFEST.bundle) is None


async def test_a_store_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnreachable, match="bundles: .*file"):
        await BundleStore(str(tmp_path / "file" / "below")).put_part("ada", BODY)


async def test_without_uploads_nothing_is_made(folder: Path) -> None:
    assert await BundleStore(str(folder)).remove_unused(RENEWED) == 0
    assert not folder.exists()


async def test_no_object_is_too_small_to_count(folder: Path) -> None:
    store = BundleStore(str(folder))
    for number in range(5):
        await store.put_part("ada", bytes([number]))
    await store.put_part("ada", bytes(BLOCK_BYTES + 1))
    assert await store.stored_bytes("ada") == 7 * BLOCK_BYTES


async def test_parts_of_another_size_than_the_manifest_says_are_missing(folder: Path) -> None:
    store = BundleStore(str(folder))
    small, full = b"x", bytes(PART_BYTES)
    names = [hashlib.sha256(body).hexdigest() for body in (small, full)]
    for body in (small, full):
        await store.put_part("ada", body)
    ends_small = Manifest(parts=(names[1], names[1], names[0]), size_bytes=2 * PART_BYTES + 1)
    assert await store.missing("ada", ends_small) == []
    longer = Manifest(parts=ends_small.parts, size_bytes=2 * PART_BYTES + 2)
    assert await store.missing("ada", longer) == [names[0]]
    begins_small = Manifest(parts=(names[0], names[1]), size_bytes=2 * PART_BYTES)
    assert await store.missing("ada", begins_small) == [names[0]]


async def test_a_disk_that_is_almost_full_takes_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = BundleStore(str(folder))
    await store.put_part("ada", BODY)
    monkeypatch.setattr(objects, "LEAST_FREE_SHARE", 1.0)
    monkeypatch.setattr(objects, "LEAST_FREE_BYTES", 2**62)
    with pytest.raises(StoreFull, match="GiB free"):
        await store.put_part("ada", b"more")
    with pytest.raises(StoreFull):
        await store.put_manifest("ada", MANIFEST)
    assert await store.part("ada", PART) == BODY


async def test_a_submission_renews_all_of_a_bundle_that_has_all(folder: Path) -> None:
    store = BundleStore(str(folder))
    await store_all(store)
    age(folder, LONG)
    stored = await store.stored("ada", MANIFEST.bundle)
    assert stored is not None and stored.is_old
    assert await store.renew("ada", MANIFEST.bundle)
    assert await store.missing("ada", MANIFEST) == []
    assert await store.remove_unused(RENEWED) == 0
    age(folder, LONG)
    (folder / "ada" / "parts" / PART).unlink()
    assert not await store.renew("ada", MANIFEST.bundle)
    stored = await store.stored("ada", MANIFEST.bundle)
    assert stored is not None and stored.is_old, "what is not whole is not renewed"
    assert not await store.renew("bob", MANIFEST.bundle)


async def test_what_is_used_after_the_listing_stays_and_manifests_go_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = BundleStore(str(folder))
    await store_all(store)
    await store.put_part("ada", b"another")
    age(folder, LONG)
    removed, listed = [], Objects.list

    async def used_when_listed(self: Objects, prefix: str) -> AsyncIterator[ObjectMeta]:
        items = [item async for item in listed(self, prefix)]
        await store.part("ada", PART)
        for item in items:
            yield item

    remove = BundleStore._remove

    async def noted(self: BundleStore, name: str, oldest: datetime) -> int:
        removed.append(name.split("/")[1])
        return await remove(self, name, oldest)

    monkeypatch.setattr(Objects, "list", used_when_listed)
    monkeypatch.setattr(BundleStore, "_remove", noted)
    freed = await store.remove_unused(RENEWED)
    assert freed == len(MANIFEST.content) + len(b"another")
    assert await store.part("ada", PART) == BODY
    assert removed[0] == "manifests" and "parts" in removed
