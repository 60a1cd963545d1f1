"""A tenant stores no more than its bound, whatever its objects are."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.gateway.bundles import TURNS, Bundles
from services.gateway.responses.problem import ApiError
from services.gateway.settings import GatewaySettings
from shared.bundles.bundle_store import RENEWED, BundleStore
from shared.contracts.bundles import PART_BYTES, Manifest
from shared.http.rate import Rate, TokenBuckets
from shared.objects import objects
from shared.objects.objects import BLOCK_BYTES
from tests.shared.bundles.test_bundle_store import LONG, age

FULL = bytes(PART_BYTES)
FULL_NAME = hashlib.sha256(FULL).hexdigest()
BLOCKS = 260
"""Blocks that a tenant stores: one full part has 256."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bundles"


@pytest.fixture
def bundles(folder: Path) -> Bundles:
    bound_gib = BLOCKS * BLOCK_BYTES / 2**30
    settings = SimpleNamespace(
        bundles=str(folder), tenant_bundles_gib=bound_gib, bundles_kept_d=30.0
    )
    return Bundles(cast("GatewaySettings", settings))


def manifest_of(parts: int) -> Manifest:
    """Return one of the manifests that a single full part suffices for."""
    return Manifest(parts=(FULL_NAME,) * parts, size_bytes=parts * PART_BYTES)


async def put(bundles: Bundles, body: bytes) -> None:
    await bundles.put_part("ada", hashlib.sha256(body).hexdigest(), body)


async def status_of(request: Awaitable[Any]) -> tuple[int, str]:
    try:
        await request
    except ApiError as error:
        return error.status, error.reason
    return 200, ""


STORED, REFUSED = (200, ""), (409, "bundles_full")


async def test_manifests_count(bundles: Bundles) -> None:
    await put(bundles, FULL)
    answers = [await status_of(bundles.put_manifest("ada", manifest_of(n))) for n in range(1, 7)]
    assert answers == [STORED] * 4 + [REFUSED] * 2


async def test_what_is_there_already_counts_once(bundles: Bundles) -> None:
    for _ in range(2 * BLOCKS // 256 + 2):
        await put(bundles, FULL)
        assert await bundles.put_manifest("ada", manifest_of(1)) == []


async def test_tiny_parts_count_as_blocks_also_at_once(bundles: Bundles, folder: Path) -> None:
    await put(bundles, FULL)
    bodies = [number.to_bytes(2, "big") for number in range(12)]
    answers = await asyncio.gather(*(status_of(put(bundles, body)) for body in bodies))
    assert sorted(answers) == [STORED] * 4 + [REFUSED] * 8
    assert await BundleStore(str(folder)).stored_bytes("ada") == BLOCKS * BLOCK_BYTES


async def test_a_full_disk_is_a_problem_of_the_installation(
    bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LEAST_FREE_SHARE", 1.0)
    monkeypatch.setattr(objects, "LEAST_FREE_BYTES", 2**62)
    assert await status_of(put(bundles, FULL)) == (503, "bundles_disk_full")


async def test_parts_are_looked_for_at_a_rate_of_their_tenant(
    bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "_parts", TokenBuckets(Rate(0.1, 2000)))
    absent = Manifest(parts=tuple(f"{n:064x}" for n in range(1024)), size_bytes=2**30)
    for _ in range(2):
        assert len(await bundles.put_manifest("ada", absent)) == 1024
    with pytest.raises(ApiError) as refused:
        await bundles.put_manifest("ada", absent)
    assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) > 100
    assert await bundles.put_manifest("bob", manifest_of(1)) == [FULL_NAME]


async def test_one_request_of_a_tenant_and_few_of_all_look_for_parts(
    bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking: Counter[str] = Counter()
    most: list[tuple[int, int]] = []
    missing = BundleStore.missing

    async def watched(store: BundleStore, tenant: str, manifest: Manifest) -> list[str]:
        looking[tenant] += 1
        most.append((max(looking.values()), looking.total()))
        try:
            return await missing(store, tenant, manifest)
        finally:
            looking[tenant] -= 1

    monkeypatch.setattr(BundleStore, "missing", watched)
    tenants = [f"t{number}" for number in range(8)] * 3
    await asyncio.gather(*(bundles.put_manifest(name, manifest_of(1)) for name in tenants))
    assert len(most) == len(tenants)
    assert (max(one for one, _ in most), max(total for _, total in most)) == (1, TURNS)


async def test_a_bundle_that_jobs_name_stays(bundles: Bundles, folder: Path) -> None:
    await put(bundles, FULL)
    manifest = manifest_of(1)
    assert await bundles.put_manifest("ada", manifest) == []
    age(folder, LONG)
    assert await bundles.has("ada", manifest.bundle)
    assert not await bundles.has("bob", manifest.bundle)
    store = BundleStore(str(folder))
    assert await store.remove_unused(RENEWED) == 0
    age(folder, LONG)
    (folder / "ada" / "parts" / FULL_NAME).unlink()
    assert not await bundles.has("ada", manifest.bundle)


async def test_a_removal_while_a_part_is_stored_harms_nothing(
    bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = BundleStore.put_part

    async def forgetting(store: BundleStore, tenant: str, body: bytes) -> None:
        bundles._usages.clear()
        await stored(store, tenant, body)

    monkeypatch.setattr(BundleStore, "put_part", forgetting)
    await put(bundles, FULL)
    assert await status_of(put(bundles, b"x" + FULL[1:])) == REFUSED
