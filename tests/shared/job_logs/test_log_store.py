"""Chunks of a job are listed by its name alone, and go when their pool does not keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.job_logs.chunk import JobKey, Run, Worker, chunk_of
from shared.job_logs.log_store import JobLogStore, Position
from shared.objects.objects import Objects
from tests import s3_server

ADA, OTHER, BOB = JobKey(1, "ada", "j"), JobKey(1, "ada", "j2"), JobKey(1, "bob", "j")


async def put(store: JobLogStore, job: JobKey, first: int, *texts: str, rank: int = 0) -> None:
    runs = [Run(100 + first, first, list(texts))]
    await store.put(job, chunk_of(Worker(1, rank), runs, is_last=False), runs)


async def check(store: JobLogStore) -> None:
    """Check what holds for each kind of store."""
    await put(store, ADA, 0, "a", "b")
    await put(store, ADA, 2, "c")
    await put(store, ADA, 0, "x", rank=1)
    await put(store, OTHER, 0, "other")
    await put(store, BOB, 5, "of bob")
    chunks = await store.chunks(ADA)
    assert [(c.worker.rank, c.first, c.next) for c in chunks] == [(0, 0, 2), (0, 2, 3), (1, 0, 1)]
    assert [c.first for c in await store.chunks(ADA, Worker(1, 1))] == [0]
    assert await store.runs(ADA, chunks[0]) == [Run(100, 0, ["a", "b"])]
    await store.put_position(1, Position(7, 3))
    assert (await store.position(1), await store.position(2)) == (Position(7, 3), Position())
    assert await store.remove_before(0, 10**6) == 0
    assert await store.remove_before(1, 102) > 0
    assert [c.first for c in await store.chunks(ADA)] == [2]
    assert [c.first for c in await store.chunks(BOB)] == [5] and not await store.chunks(OTHER)
    await store.remove_job(BOB)
    assert not await store.chunks(BOB) and await store.chunks(ADA)


async def test_a_folder_is_a_store(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    await check(JobLogStore(str(folder), writes=True))
    assert [path.name for path in (folder / "1").iterdir()] == ["ada"], "no empty folder is left"


@pytest.mark.parts
@pytest.mark.process
async def test_a_bucket_is_a_store(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    with s3_server.running("berth-output") as endpoint:
        address = f"s3://berth-output/jobs?endpoint={endpoint}&credentials={credentials}"
        await check(JobLogStore(address, writes=True))


async def test_a_damaged_chunk_has_no_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = JobLogStore(str(tmp_path), writes=True)
    await put(store, ADA, 0, "a")
    [chunk] = await store.chunks(ADA)
    path = tmp_path / ADA.prefix / chunk.name
    path.write_bytes(path.read_bytes()[:-1])
    assert await store.runs(ADA, chunk) == [] and "is damaged" in caplog.text
    path.unlink()
    assert await store.runs(ADA, chunk) == []


async def test_a_reader_makes_no_folder(tmp_path: Path) -> None:
    reader = JobLogStore(str(tmp_path / "output"))
    assert await reader.chunks(ADA) == [] and await reader.position(0) == Position()
    assert not (tmp_path / "output").exists()


async def test_only_the_folder_of_the_job_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, listed, read = JobLogStore(str(tmp_path), writes=True), [], []
    await put(store, ADA, 0, "a")
    await put(store, BOB, 0, "b")
    listing, getting = Objects.list, Objects.get

    async def noted(self: Objects, name: str):  # type: ignore[no-untyped-def]
        read.append(name)
        return await getting(self, name)

    def noted_list(self: Objects, prefix: str):  # type: ignore[no-untyped-def]
        listed.append(prefix)
        return listing(self, prefix)

    monkeypatch.setattr(Objects, "list", noted_list)
    monkeypatch.setattr(Objects, "get", noted)
    [chunk] = await store.chunks(ADA)
    await store.runs(ADA, chunk)
    assert listed == ["1/ada/j/"] and all(name.startswith("1/ada/j/") for name in read)
