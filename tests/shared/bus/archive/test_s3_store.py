"""The adapter for S3. That of several writers one wins is the server's promise: moto, which is not
S3, looks for the name and makes the object in two steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.bus.archive import s3_store
from shared.bus.archive.archive import Archive
from shared.bus.archive.opening import open_store
from shared.bus.archive.store import MARK, ObjectStore
from shared.ledger.errors import ArchiveUnreachable
from tests import s3_server
from tests.broker_clients import read_to_end
from tests.shared.bus.archive.archives import INPUT, LEDGER, Installation

pytestmark = [pytest.mark.parts, pytest.mark.process]

BUCKET = "berth-archives"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server.running(BUCKET) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("s3") / "credentials"
    file.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    return file


@pytest.fixture
def address(endpoint: str, credentials: Path, request: pytest.FixtureRequest) -> str:
    return f"s3://{BUCKET}/{request.node.name}?endpoint={endpoint}&credentials={credentials}"


@pytest.fixture
def store(address: str) -> ObjectStore:
    store = open_store(address)
    store.create()
    return store


def test_an_object_is_made_once(store: ObjectStore) -> None:
    assert store.put_new("a/b/0", b"first")
    assert not store.put_new("a/b/0", b"second")
    assert store.get("a/b/0") == b"first"
    assert store.get("a/b/1") is None
    assert store.put_new("a/b/1/below", b"")
    assert store.put_new("a/b/2", b"x" * (11 << 20))
    assert store.names("a/b") == ["0", "2"]
    assert store.names("c") == []


def test_another_prefix_is_no_empty_archive(address: str) -> None:
    store = open_store(address)
    for call in (lambda: store.get("c/0"), lambda: store.names("c"), store.check):
        with pytest.raises(ArchiveUnreachable, match=f"{BUCKET}/test_another.*{MARK}"):
            call()
    with pytest.raises(ArchiveUnreachable, match=MARK):
        store.put_new("c/0", b"")


def test_a_prefix_with_other_objects_is_not_made_an_archive(address: str) -> None:
    inner = open_store(address.replace("?", "/inner?"))
    inner.create()
    inner.create()
    with pytest.raises(ArchiveUnreachable, match="not empty"):
        open_store(address).create()


def test_a_check_of_the_right_to_write_makes_nothing(store: ObjectStore) -> None:
    store.check_writable()
    assert store.names("") == [MARK]


def test_what_fails_is_named(address: str, endpoint: str, credentials: Path) -> None:
    missing = open_store(address.replace(BUCKET, "no-bucket"))
    with pytest.raises(ArchiveUnreachable, match="s3://no-bucket/.*NoSuchBucket"):
        missing.create()
    for call in (lambda: missing.names("c"), missing.check_writable):
        with pytest.raises(ArchiveUnreachable, match="s3://no-bucket/.*NoSuchBucket"):
            call()
    away = open_store(f"s3://{BUCKET}?endpoint=http://127.0.0.1:1&credentials={credentials}")
    with pytest.raises(ArchiveUnreachable, match=f"s3://{BUCKET}/c/0: .*error sending request"):
        away.get("c/0")
    with pytest.raises(ArchiveUnreachable, match="credentials=/missing: No such file"):
        open_store(f"s3://{BUCKET}?endpoint={endpoint}&credentials=/missing")


def test_a_credentials_file_is_read_again(
    store: ObjectStore, credentials: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_store, "CREDENTIALS_S", -1)
    store = open_store(address)
    store.check()
    text = credentials.read_text()
    credentials.write_text("[default]\n")
    try:
        with pytest.raises(ArchiveUnreachable, match="has no aws_access_key_id"):
            store.get("c/0")
    finally:
        credentials.write_text(text)
    assert store.get("c/0") is None


async def test_a_ledger_is_archived_and_read_back(store: ObjectStore, tmp_path: Path) -> None:
    site = Installation(tmp_path)
    site.store = store
    site.write(30)
    assert await site.archive(LEDGER, segment_bytes=400) > 1
    assert await site.archive(INPUT, writer="b") == 1
    archive = Archive(store)
    assert archive.check(LEDGER, 1) == 60
    assert archive.checked(LEDGER) == len(archive.refresh(LEDGER)) - 1
    site.broker.trim(LEDGER, 59)
    site.write(1)
    assert [entry.offset for entry in await read_to_end(site.tiered, LEDGER)] == list(range(62))
