"""A watch goes on from its version, and is listed anew when the API has that no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from services.executor.engines.kubernetes import watched as module
from services.executor.engines.kubernetes.watched import Watched
from tests.patience import until
from tests.services.executor.engines.kubernetes.fake_api import (
    GONE,
    PATH,
    FakeApi,
    change,
    row,
    serving,
)


@asynccontextmanager
async def watching(fake: FakeApi) -> AsyncIterator[Watched[str]]:
    async with serving(fake) as api:
        watched: Watched[str] = Watched(api, PATH, lambda item: str(item["value"]), "a=b")
        task = asyncio.create_task(watched.run())
        try:
            yield watched
        finally:
            task.cancel()
            await asyncio.wait([task])


def starts(fake: FakeApi) -> Callable[[], list[str]]:
    """Return the versions from which watches began."""
    return lambda: [query["resourceVersion"] for query in fake.queries if "watch" in query]


async def test_a_collection_is_listed_in_pages_and_then_watched() -> None:
    fake = FakeApi()
    fake.items, fake.version = [row("a", 1, "1"), row("b", 2, "1")], 5
    fake.watches = [[change("MODIFIED", row("a", 6, "2")), change("DELETED", row("b", 7))]]
    async with watching(fake) as watched:
        await until(lambda: watched.items == {("ns", "a"): "2"} and len(starts(fake)()) == 2)
    assert starts(fake)() == ["5", "7"], "it goes on from its version"
    assert watched.listed == 1 and watched.problem == ""
    assert {query["labelSelector"] for query in fake.queries} == {"a=b"}


async def test_each_change_of_the_watch_is_passed_on_and_no_item_of_the_list() -> None:
    fake, seen = FakeApi(), list[str]()
    fake.items = [row("a", 1, "1")]
    fake.watches = [[change("MODIFIED", row("a", 6, "2")), change("DELETED", row("a", 7, "3"))]]
    async with watching(fake) as watched:
        watched.on_change = seen.append
        await until(lambda: seen == ["2", "3"])
        assert watched.items == {}


async def test_a_bookmark_moves_the_version_alone() -> None:
    fake = FakeApi()
    fake.items = [row("a", 1, "1")]
    fake.watches = [[change("BOOKMARK", {"metadata": {"resourceVersion": "9"}})]]
    async with watching(fake) as watched:
        await until(lambda: starts(fake)() == ["1", "9"])
        assert watched.items == {("ns", "a"): "1"}


async def test_a_version_that_is_compacted_away_is_listed_anew() -> None:
    fake = FakeApi()
    fake.items, fake.later = [row("a", 1, "1"), row("b", 1, "1")], [row("b", 8, "2")]
    fake.watches = [[GONE]]
    async with watching(fake) as watched:
        await until(lambda: watched.listed == 2)
        assert watched.items == {("ns", "b"): "2"}, "what is gone meanwhile is gone"


async def test_an_api_that_is_away_is_a_problem_until_it_answers() -> None:
    fake = FakeApi()
    fake.status = 503
    async with watching(fake) as watched:
        await until(lambda: "503: why" in watched.problem)
        fake.status = 200
        await until(lambda: watched.problem == "")


@pytest.mark.parametrize("status", [403, 404])
async def test_a_right_that_is_missing_or_an_api_that_is_not_spoken_is_named(status: int) -> None:
    fake = FakeApi()
    fake.status = status
    async with watching(fake) as watched:
        await until(lambda: watched.problem == f"{PATH}: why")


async def test_an_api_that_is_away_is_tried_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[int] = []

    async def pause(in_vain: int) -> None:
        pauses.append(in_vain)
        await asyncio.sleep(0)

    monkeypatch.setattr(module, "pause", pause)
    fake = FakeApi()
    fake.status = 503
    async with watching(fake) as watched:
        await until(lambda: len(pauses) >= 3)
        fake.items, fake.watches = [row("a", 1)], [[], [GONE], [change("MODIFIED", row("a", 2))]]
        fake.status = 200
        await until(lambda: watched.problem == "" and not fake.watches)
        paused = len(pauses)
        assert pauses == [number + 1 for number in range(paused)]
        assert paused >= 5, (
            "a watch that ends at once, or is too old again and again, is one in vain"
        )
