"""A pool serves from emulated engines: failover, drain, room, health and cancellation."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec
import pytest

from services.throttle.upstreams.calls import UpstreamBroken, UpstreamsFailed
from services.throttle.upstreams.pool import UpstreamPool
from simulator.emulator.faults import FaultRates
from simulator.llm.batching import EngineLimits
from tests.patience import PATIENCE_S, until
from tests.services.throttle.upstreams.engines import (
    ENDLESS,
    chat,
    emulated,
    emulated_pair,
    endpoint,
    pool_of,
    probing,
    read,
    still,
    tokens,
)

NOWHERE = "http://127.0.0.1:1"
FAILING = FaultRates({"error": 1.0})


def no_secret(name: str) -> None:
    """Know no secret."""


async def test_a_stream_arrives_as_the_engine_wrote_it() -> None:
    async with emulated() as engine, pool_of(engine.url) as pool:
        async with pool.send(chat()) as answer:
            chunks = [chunk async for chunk in answer.chunks]
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "transfer-encoding" not in answer.headers
        body = b"".join(chunks)
        assert (answer.upstream, answer.status, tokens(body)) == ("u0", 200, 8)
        assert body.endswith(b"data: [DONE]\n\n")
        assert pool.states()[0].in_flight == 0


async def test_raw_values_are_sent_byte_for_byte_and_the_model_of_the_upstream_counts() -> None:
    async with emulated(models=("there",)) as engine, pool_of(engine.url, model="there") as pool:
        call = chat(messages=msgspec.Raw(b'[{"role":"user", "content":"Hello"}]'), stream=False)
        _, status, body = await read(pool, call)
    assert (status, msgspec.json.decode(body)["model"]) == (200, "there")


@pytest.mark.parametrize("balance", ["least_loaded", "two_choices", "prefix"])
async def test_requests_are_shared_by_every_balance(balance: str) -> None:
    async with emulated_pair() as (a, b), pool_of(a.url, b.url, balance=balance) as pool:
        calls = [chat(prefix=str(index)) for index in range(40)]
        answers = await asyncio.gather(*(read(pool, call) for call in calls))
    counts = Counter(upstream for upstream, _, _ in answers)
    assert min(counts["u0"], counts["u1"]) >= 8


async def test_sequential_requests_take_turns() -> None:
    async with emulated_pair() as (a, b), pool_of(a.url, b.url) as pool:
        names = [(await read(pool, chat()))[0] for _ in range(6)]
    assert names == ["u0", "u1"] * 3


async def test_equal_prefixes_go_to_one_engine() -> None:
    async with emulated_pair() as (a, b), pool_of(a.url, b.url, balance="prefix") as pool:
        names = {(await read(pool, chat(prefix="system prompt")))[0] for _ in range(6)}
    assert len(names) == 1


async def test_a_request_fails_over_before_the_first_byte() -> None:
    async with (
        emulated(faults=FAILING) as bad,
        emulated() as good,
        pool_of(bad.url, NOWHERE, good.url, clock=still) as pool,
    ):
        answers = [await read(pool, chat()) for _ in range(6)]
        reasons = [state.reason for state in pool.states()]
    assert {(name, status) for name, status, _ in answers} == {("u2", 200)}
    assert [tokens(body) for _, _, body in answers] == [8] * 6
    assert reasons[1:] == ["connection failed", ""]


async def test_one_that_fails_what_others_serve_is_taken_out() -> None:
    async with (
        emulated(faults=FAILING) as bad,
        emulated() as good,
        pool_of(bad.url, good.url, clock=still) as pool,
    ):
        for _ in range(8):
            await read(pool, chat())
        state, _ = pool.states()
    assert (state.available, state.reason) == (False, "status 500")


async def test_a_request_that_every_engine_fails_takes_none_of_them_away() -> None:
    async with emulated_pair() as (a, b), pool_of(a.url, b.url) as pool:
        for _ in range(8):
            with pytest.raises(UpstreamsFailed) as failed:
                await read(pool, chat(fault="error"))
            assert (failed.value.status, failed.value.code) == (500, "upstream_failed")
            assert set(failed.value.text.split("; ")) == {"u0: status 500", "u1: status 500"}
        assert all(state.available for state in pool.states())
        assert "started to answer" in failed.value.engine_text


async def test_nothing_is_tried_again_after_the_first_byte() -> None:
    async with emulated_pair() as (a, b), pool_of(a.url, b.url) as pool:
        with pytest.raises(UpstreamBroken) as broken:
            await read(pool, chat(fault="reset"))
        assert broken.value.upstream == "u0"
        assert await b.ended() == 0
        assert pool.states()[0].in_flight == 0


async def test_an_answer_that_hangs_is_not_sent_twice() -> None:
    async with emulated_pair() as (a, b), pool_of(a.url, b.url) as pool:
        with pytest.raises(UpstreamsFailed) as failed:
            await read(pool, chat(fault="hang", first_byte_s=0.2))
        assert (failed.value.status, failed.value.code) == (504, "upstream_timeout")
        assert failed.value.text == "u0: no answer in time"
        assert pool.capacity == 128


async def test_leaving_a_stream_aborts_it_in_the_engine_at_once(
    record_property: Callable[[str, object], None],
) -> None:
    async with emulated(ENDLESS) as engine, pool_of(engine.url) as pool:
        waits_ms = []
        for count in range(1, 6):
            async with pool.send(chat(max_tokens=5000)) as answer:
                await anext(aiter(answer.chunks))
                left_at = time.monotonic()
            await engine.until("request_success_total", count, finished_reason="abort")
            waits_ms.append(1000 * (time.monotonic() - left_at))
        record_property("abort_ms", sorted(waits_ms))
        assert await engine.metric("num_requests_running") == 0


async def test_a_cancelled_request_is_aborted_while_the_engine_is_silent() -> None:
    limits = EngineLimits(batch_requests=1)
    async with emulated(ENDLESS, limits=limits) as engine, pool_of(engine.url) as pool:
        async with pool.send(chat(max_tokens=5000)) as running:
            await anext(aiter(running.chunks))
            queued = asyncio.create_task(read(pool, chat()))
            await engine.until("num_requests_waiting", 1)
            queued.cancel()
            await engine.until("num_requests_waiting", 0)
            assert pool.states()[0].in_flight == 1
            with pytest.raises(asyncio.CancelledError):
                await queued
        assert pool.states()[0].in_flight == 0


async def test_leaving_an_answer_that_was_read_keeps_the_connection() -> None:
    async with emulated() as engine, pool_of(engine.url) as pool:
        for _ in range(3):
            await read(pool, chat())
        sessions = pool._open_sessions
        assert sessions is not None
        connector = sessions.kept.connector
        assert connector is not None
        assert sum(len(kept) for kept in connector._conns.values()) == 1


async def test_a_drained_upstream_ends_what_it_has_and_gets_nothing_new() -> None:
    async with emulated(ENDLESS) as a, emulated() as b:
        async with pool_of(a.url, b.url) as pool, pool.send(chat(max_tokens=5000)) as running:
            assert running.upstream == "u0"
            assert pool.capacity == 128
            first, second = endpoint(a.url, b.url).upstreams
            drained = first.model_copy(update={"drained": True})
            settings = endpoint().model_copy(update={"upstreams": (drained, second)})
            pool.changed.clear()
            pool.configure(settings)
            assert pool.changed.is_set()
            # The request that runs on the drained one takes no room from the other.
            assert pool.capacity == 65
            assert {(await read(pool, chat()))[0] for _ in range(4)} == {"u1"}
            assert pool.states()[0].reason == "drained"
            assert await anext(aiter(running.chunks))
        assert pool.capacity == 64


async def test_unchanged_upstreams_keep_their_state_and_removed_ones_end_their_requests() -> None:
    async with emulated(ENDLESS) as a, emulated() as b:
        async with (
            pool_of(a.url, NOWHERE, clock=still) as pool,
            pool.send(chat(max_tokens=5000)) as running,
        ):
            await anext(aiter(running.chunks))
            with pytest.raises(UpstreamsFailed):
                await read(pool, chat(fault="error"))
            pool.configure(endpoint(a.url, NOWHERE, max_requests=7))
            assert [state.reason for state in pool.states()] == ["", "connection failed"]
            assert (pool.states()[0].in_flight, pool.capacity) == (1, 7)
            pool.configure(endpoint(b.url, max_requests=7))
            assert (pool.states()[0].in_flight, pool.capacity) == (0, 8)
            assert await anext(aiter(running.chunks))
        assert pool.capacity == 7


async def test_requests_above_the_room_wait_for_it() -> None:
    async with emulated(100) as engine, pool_of(engine.url, max_requests=2) as pool:
        tasks = [asyncio.create_task(read(pool, chat())) for _ in range(8)]
        most = 0
        while not all(task.done() for task in tasks):
            most = max(most, pool.states()[0].in_flight)
            await asyncio.sleep(0.001)
        assert [tokens((await task)[2]) for task in tasks] == [8] * 8
    assert most == 2


async def test_a_wait_for_room_has_a_limit() -> None:
    async with (
        emulated(ENDLESS) as engine,
        pool_of(engine.url, max_requests=1) as pool,
        pool.send(chat(max_tokens=5000)),
    ):
        with pytest.raises(UpstreamsFailed, match=r"no upstream had room within 0\.1 s") as full:
            await read(pool, chat(first_byte_s=0.1))
    assert (full.value.status, full.value.code, full.value.retry_after_s) == (
        503,
        "upstream_busy",
        1.0,
    )


async def test_without_upstreams_there_is_no_room_and_the_error_says_why() -> None:
    pool = UpstreamPool(no_secret, still)
    assert (pool.capacity, pool.overloaded, pool.states()) == (0, False, ())
    with pytest.raises(UpstreamsFailed, match="no upstream is configured") as failed:
        await read(pool, chat())
    assert (failed.value.status, failed.value.code) == (503, "no_upstream")
    pool.configure(endpoint(NOWHERE))
    with pytest.raises(UpstreamsFailed, match="u0: connection failed"):
        await read(pool, chat())
    with pytest.raises(UpstreamsFailed, match="u0: connection failed") as failed:
        await read(pool, chat())
    assert (failed.value.code, failed.value.retry_after_s) == ("no_upstream", 1.0)
    await pool.close()


async def test_a_closed_pool_sends_nothing_and_holds_no_request_back() -> None:
    """A request that is tried anew or waits for room as the process stops has no ledger left."""
    async with (
        emulated(ENDLESS) as engine,
        pool_of(engine.url, max_requests=1) as pool,
        pool.send(chat(max_tokens=5000)),
    ):
        waits = asyncio.create_task(read(pool, chat()))
        await until(lambda: bool(pool._members._waiting))
        await pool.close()
        for request in (waits, read(pool, chat())):
            with pytest.raises(UpstreamsFailed, match="the process stops"):
                await request


async def test_a_breaker_opens_half_opens_and_closes() -> None:
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(emulated())
        now = 0.0
        pool = UpstreamPool(no_secret, clock=lambda: now)
        stack.push_async_callback(pool.close)
        pool.configure(endpoint(NOWHERE, max_requests=9))
        with pytest.raises(UpstreamsFailed):
            await read(pool, chat())
        assert pool.capacity == 0
        assert pool.changed.is_set()
        now = 1.0
        assert pool.capacity == 1, "half open it takes one request"
        # The same upstream is up again: only its address is another, for this test.
        upstream = pool._members.all[0]
        upstream._urls[chat().path] = upstream._urls[chat().path].with_port(
            int(engine.url.rpartition(":")[2])
        )
        async with pool.send(chat()) as answer:
            assert pool.capacity == 9
            assert answer.status == 200
        assert pool.states()[0].available


async def test_the_end_of_a_cool_down_is_signalled() -> None:
    async with pool_of(NOWHERE) as pool:
        with pytest.raises(UpstreamsFailed):
            await read(pool, chat())
        assert pool.capacity == 0
        pool.changed.clear()
        async with asyncio.timeout(PATIENCE_S):
            await pool.changed.wait()
        assert pool.capacity == 1


async def test_load_and_health_are_read_from_the_engine() -> None:
    limits = EngineLimits(batch_requests=1)
    async with (
        emulated(ENDLESS, limits=limits) as engine,
        pool_of(engine.url) as pool,
        pool.send(chat(max_tokens=5000)),
    ):
        queued = asyncio.create_task(read(pool, chat()))
        await engine.until("num_requests_waiting", 1)
        async with probing(pool):
            await until(lambda: pool.overloaded)
        assert pool.changed.is_set()
        (state,) = pool.states()
        assert (state.waiting, state.in_flight, state.available) == (1, 2, True)
        assert state.kv_ratio is not None
        queued.cancel()
        await asyncio.wait([queued])


async def test_an_engine_that_is_away_is_not_available_until_it_is_back() -> None:
    async with pool_of(NOWHERE) as pool, probing(pool):
        await until(lambda: not pool.states()[0].available)
        assert pool.states()[0].reason == "health: connection failed"
        assert pool.capacity == 0


async def test_an_adapter_is_sent_under_its_own_name() -> None:
    async with (
        emulated(models=("there",), adapters=("lora",)) as engine,
        pool_of(engine.url, model="there", adapters=("lora",)) as pool,
    ):
        for model, served in (("lora", "lora"), ("chat", "there")):
            _, _, body = await read(pool, chat(model=model, stream=False))
            assert msgspec.json.decode(body)["model"] == served


async def test_credentials_are_those_of_the_upstream_and_never_the_clients() -> None:
    secrets = {"engine-key": "right\n"}
    async with emulated(keys=("right",)) as engine:
        async with pool_of(engine.url, key="engine-key", secrets=secrets) as pool:
            call = chat(headers={"Authorization": "Bearer wrong", "authorization": "Bearer wrong"})
            assert (await read(pool, call))[1] == 200
        async with pool_of(engine.url) as pool:
            with pytest.raises(UpstreamsFailed, match="u0: status 401: credentials refused") as no:
                await read(pool, chat(headers={"Authorization": "Bearer right"}))
            assert no.value.status == 502
        async with pool_of(engine.url, key="engine-key", secrets={"engine-key": "ri\nght"}) as pool:
            with pytest.raises(UpstreamsFailed, match="secret engine-key is not printable ASCII"):
                await read(pool, chat())
        async with pool_of(engine.url, key="engine-key") as pool:
            with pytest.raises(UpstreamsFailed, match="u0: no secret engine-key"):
                await read(pool, chat())
            assert pool.capacity == 0


async def test_an_error_of_the_request_is_an_answer() -> None:
    async with emulated_pair() as (a, b), pool_of(a.url, b.url) as pool:
        name, status, body = await read(pool, chat(model="org/none"))
        assert (name, status) == ("u0", 404)
        assert msgspec.json.decode(body)["error"]["message"]
