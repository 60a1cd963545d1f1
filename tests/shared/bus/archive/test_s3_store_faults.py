"""A server of S3 that refuses, delays and cuts: the archive is the ledger, or is not extended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from shared.bus.archive import s3_store
from shared.bus.archive.archive import Archive
from shared.bus.archive.archiver import Archiver, ArchiverOptions
from shared.bus.archive.opening import open_store
from shared.bus.logs.memory import MemoryLog
from shared.ledger.errors import ArchiveUnreachable
from tests import s3_server
from tests.broker_clients import read_to_end
from tests.s3_faults import ANSWER_CUT, ANSWER_LOST, NONE, REFUSED, REQUEST_CUT, SLOW, faulty
from tests.shared.bus.archive.archives import LEDGER, NOW_MS, Installation

pytestmark = [pytest.mark.parts, pytest.mark.process]

BUCKET = "berth-faults"
FAULTS = (REFUSED, REQUEST_CUT, ANSWER_LOST, ANSWER_CUT, SLOW)
EVERY = 5
"""Every so many requests meet a fault."""
TRIES = 40


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server.running(BUCKET) as endpoint:
        yield endpoint


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    return file


def address(endpoint: str, credentials: Path, prefix: str) -> str:
    return f"s3://{BUCKET}/{prefix}?endpoint={endpoint}&credentials={credentials}"


def now_and_then() -> Iterator[str]:
    for fault in cycle(FAULTS):
        yield from [NONE] * (EVERY - 1)
        yield fault


@pytest.mark.parametrize("retries", [0, s3_store.RETRIES])
async def test_behind_faults_the_archive_is_the_ledger(
    endpoint: str, credentials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    monkeypatch.setattr(s3_store, "RETRIES", retries)
    prefix = f"retries-{retries}"
    open_store(address(endpoint, credentials, prefix)).create()
    site = Installation(tmp_path / "unused")
    failed = 0
    with faulty(endpoint, now_and_then()) as way:
        archive = Archive(open_store(address(way.endpoint, credentials, prefix)))
        archiver = Archiver(
            MemoryLog(site.broker), archive, ArchiverOptions("a", segment_bytes=1), lambda: NOW_MS
        )
        site.write(6)
        for _ in range(TRIES):
            try:
                await archiver.archive(LEDGER, 12)
                break
            except ArchiveUnreachable:
                failed += 1
        assert set(way.met) == set(FAULTS)
    # The client repeats what was refused or not answered, and no answer that ends too early.
    assert 0 < failed <= len(way.met)
    site.store = open_store(address(endpoint, credentials, prefix))
    assert Archive(site.store).check(LEDGER, 1) == 12
    expected = [entry.value for entry in site.broker.entries(LEDGER)]
    site.broker.trim(LEDGER, 11)
    assert [entry.value for entry in await read_to_end(site.tiered, LEDGER)] == expected


def test_a_server_that_is_too_slow_is_unreachable(
    endpoint: str, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_store, "REQUEST_S", 0.1)
    monkeypatch.setattr(s3_store, "RETRIES", 0)
    with faulty(endpoint, cycle([SLOW])) as way:
        store = open_store(address(way.endpoint, credentials, "slow"))
        with pytest.raises(ArchiveUnreachable, match="slow/a: "):
            store.get("a")
