"""Requests of the official client through the proxy, to emulated engines over real sockets."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from infra.security import certificates
from services.throttle import reports
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.contracts.access import KeyRevoked
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.endpoints import EndpointDeleted, TokenBudget
from shared.contracts.llm import (
    EndpointCapacityNoted,
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    RequestEnd,
    TokensCharged,
)
from simulator.emulator.faults import FaultRates, parse_rates
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from tests.harness.ledger import accepted
from tests.patience import PATIENCE_S, until
from tests.services.throttle.shell import KEY, LEDGER, MODEL, ThrottleStack, chat, key
from tests.shared.oidc.identity import AUDIENCE, ISSUER, Provider, new_rsa

CHAT = "/v1/chat/completions"
FAST = 10_000.0
SLOW = 0.3
"""Speed of an engine whose requests do not end by themselves."""
LONG = 5_000
ADAPTER = "org/lora"


@asynccontextmanager
async def engine(speed: float = FAST, **options: Any) -> AsyncIterator[tuple[EngineEmulator, str]]:
    emulator = EngineEmulator(EmulatorOptions((MODEL,), (ADAPTER,), speed=speed, **options))
    async with emulator.listening("127.0.0.1", 0) as port:
        yield emulator, f"http://127.0.0.1:{port}"


@asynccontextmanager
async def serving(
    tmp_path: Path, speed: float = FAST, options: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[tuple[ThrottleStack, aiohttp.ClientSession]]:
    """Serve one endpoint with one emulated engine; yields the stack and a client."""
    async with engine(speed, **(options or {})) as (_, url):
        stack = ThrottleStack(tmp_path, url, **settings)
        async with stack.running() as client:
            yield stack, client


def always(fault: str) -> FaultRates:
    return FaultRates(parse_rates(f"{fault}=1"))


def official(stack: ThrottleStack, key: str = "acme-1.sesame") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{stack.url}/v1", api_key=key, max_retries=0, timeout=PATIENCE_S
    )


async def post(
    client: aiohttp.ClientSession, body: Any, path: str = CHAT, **headers: str
) -> tuple[int, Any, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post(path, data=data, headers=named) as response:
        return response.status, json.loads(await response.read()), response.headers


async def until_idle(client: aiohttp.ClientSession, url: str) -> None:
    """Wait until the engine runs no request."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with client.get(f"{url}/metrics") as response:
                if "vllm:num_requests_running{" in (text := await response.text()):
                    lines = [li for li in text.splitlines() if "num_requests_running{" in li]
                    if all(line.endswith(" 0.0") for line in lines):
                        return
            await asyncio.sleep(0.02)


async def settled(stack: ThrottleStack) -> LlmRequestFinished:
    await until(lambda: "llm.finished.v1" in stack.types())
    event: LlmRequestFinished = stack.only(LlmRequestFinished)
    return event


async def test_a_chat_completion_is_reserved_served_and_settled(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, client):
        status, body, headers = await post(client, chat(text="x" * 400))
        finished = await settled(stack)
    assert status == 200
    assert body["object"] == "chat.completion"
    assert body["model"] == MODEL
    assert body["choices"][0]["message"]["content"].startswith("[emulated]")
    assert body["usage"]["completion_tokens"] == 10
    assert finished.outcome == "completed"
    assert (finished.output_tokens, finished.upstream) == (10, "e0")
    assert finished.prompt_tokens == body["usage"]["prompt_tokens"]
    queued = stack.only(LlmRequestQueued)
    assert (queued.tenant, queued.endpoint, queued.max_output_tokens) == ("acme", MODEL, 10)
    assert headers["x-request-id"] == queued.request_id
    assert headers["x-berth-interaction"] == queued.interaction
    assert queued.is_issued
    assert int(headers["x-berth-queue-ms"]) >= 0
    assert float(headers["x-berth-overhead-ms"]) >= 0
    assert headers["x-berth-position"] == "0"
    assert headers["x-ratelimit-limit-requests"] == "200"


async def test_an_id_of_an_interaction_counts_as_issued_for_its_tenant_alone(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as (stack, client), stack.client("other-1.sesame") as other:
        _, _, headers = await post(client, chat())
        own = headers["x-berth-interaction"]
        content, dot, mac = own.rpartition(".")
        forged = content + dot + ("a" if mac[0] != "a" else "b") + mac[1:]
        for sender, interaction in (
            (client, own),
            (client, forged),
            (client, "mine"),
            (other, own),
        ):
            status, _, headers = await post(sender, chat(), x_berth_interaction=interaction)
            assert (status, headers["x-berth-interaction"]) == (200, interaction)
        queued = [event for event in stack.events() if isinstance(event, LlmRequestQueued)]
    assert [event.is_issued for event in queued] == [True, True, False, False, False]
    assert [event.stage for event in queued] == [0, 1, 0, 0, 0]


async def test_the_official_client_gets_answers_streams_models_and_embeddings(
    tmp_path: Path,
) -> None:
    hello: list[Any] = [{"role": "user", "content": "hello"}]
    async with serving(tmp_path) as (stack, _), official(stack) as client:
        answer = await client.chat.completions.create(model=MODEL, messages=hello, max_tokens=7)
        assert answer.usage is not None
        stream = await client.chat.completions.create(
            model=MODEL, messages=hello, max_tokens=7, stream=True
        )
        chunks = [chunk async for chunk in stream]
        assert all(chunk.usage is None for chunk in chunks)
        assert all(chunk.choices for chunk in chunks)
        text = await client.completions.create(model=MODEL, prompt="once", max_tokens=5)
        assert text.choices[0].text
        vectors = await client.embeddings.create(model=MODEL, input=["a", "b"])
        assert len(vectors.data) == 2
        response = await client.responses.create(model=MODEL, input="hi", max_output_tokens=20)
        assert response.output_text
        assert [model.id for model in (await client.models.list()).data] == ["far", MODEL]
        assert (await client.models.retrieve(MODEL)).id == MODEL


async def test_a_stream_has_the_usage_only_if_the_client_wants_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, client):
        body = chat(max_tokens=5, stream=True)
        plain = await (await client.post(CHAT, json=body)).read()
        body["stream_options"] = {"include_usage": True}
        with_usage = await (await client.post(CHAT, json=body)).read()
        await until(lambda: stack.types().count("llm.finished.v1") == 2)
    assert b'"usage":{' not in plain
    assert plain.endswith(b"data: [DONE]\n\n")
    assert with_usage.count(b'"usage":{') == 1
    assert all(
        event.output_tokens == 5
        for event in stack.events()
        if isinstance(event, LlmRequestFinished)
    )


async def test_a_client_that_leaves_frees_the_engine_and_pays_what_was_made(tmp_path: Path) -> None:
    async with engine(speed=1.0) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        async with stack.running() as client:
            body = chat(max_tokens=LONG, stream=True)
            async with client.post(CHAT, json=body) as response:
                await response.content.readany()
            finished = await settled(stack)
            async with aiohttp.ClientSession() as probe:
                await until_idle(probe, url)
    assert finished.outcome == "cancelled"
    assert 1 <= finished.output_tokens < LONG


async def test_a_client_that_leaves_the_queue_is_charged_nothing(tmp_path: Path) -> None:
    async with engine(speed=SLOW) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        stack.access(
            stack.endpoint.model_copy(
                update={
                    "upstreams": (
                        stack.endpoint.upstreams[0].model_copy(update={"max_requests": 1}),
                    )
                }
            )
        )
        async with stack.running() as client:
            first = asyncio.create_task(post(client, chat(max_tokens=LONG)))
            await until(lambda: len(stack.lane.state.running) == 1)
            second = asyncio.create_task(post(client, chat(max_tokens=LONG)))
            await until(lambda: len(stack.lane.state.waiting) == 1)
            second.cancel()
            await until(lambda: "llm.rejected.v1" in stack.types())
            assert stack.only(LlmRequestRejected).reason == "cancelled"
            first.cancel()
            assert (await settled(stack)).outcome == "cancelled"


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"{", 400, "invalid_body", "body"),
        (b"[]", 400, "invalid_body", "body"),
        ({"model": MODEL}, 400, "invalid_body", "messages"),
        (chat(max_tokens=0), 400, "invalid_body", "max_tokens"),
        (chat() | {"model": "none"}, 404, "model_not_found", "model"),
        (chat() | {"model": "far"}, 503, "endpoint_unavailable", None),
    ],
)
async def test_a_request_that_is_refused_names_the_field(
    tmp_path: Path, body: Any, status: int, code: str, param: str | None
) -> None:
    async with serving(tmp_path) as (stack, client):
        answer = await post(client, body)
    assert answer[0] == status
    assert answer[1]["error"]["code"] == code
    assert answer[1]["error"]["param"] == param
    assert "llm.queued.v1" not in stack.types()


async def test_keys_are_checked_and_a_revoked_one_ends(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, client):
        for name in ("acme-1.wrong", "acme-view.sesame", "ops.sesame"):
            async with stack.client(name) as other:
                assert (await post(other, chat()))[0] in (401, 403)
        assert (await post(client, chat()))[0] == 200
        stack.access(KeyRevoked(key_id="acme-1"))

        async def refused() -> bool:
            return (await post(client, chat()))[0] == 401

        async with asyncio.timeout(PATIENCE_S):
            while not await refused():
                await asyncio.sleep(0.02)


async def test_a_key_calls_only_its_models_and_sees_no_others(tmp_path: Path) -> None:
    async with serving(tmp_path, adapters=(ADAPTER,)) as (stack, _):
        stack.access(key("acme-2", "acme", models=(ADAPTER,)))
        async with stack.client("acme-2.sesame") as client:
            status, _, _ = await post(client, chat() | {"model": ADAPTER})
            assert status == 200
            assert (await post(client, chat()))[0] == 404
            async with client.get("/v1/models") as response:
                models = [model["id"] for model in (await response.json())["data"]]
        assert models == [ADAPTER]
        assert stack.only(LlmRequestQueued).model == ADAPTER


async def test_a_spent_budget_is_refused_with_the_time_of_a_retry(tmp_path: Path) -> None:
    budget = TokenBudget(holder="tenant", unit="tokens", limit=60, memory="window", period_s=60)
    async with serving(tmp_path, budgets=(budget,)) as (stack, client):
        status, _, headers = await post(client, chat(max_tokens=30))
        assert status == 200
        first = int(headers["x-ratelimit-remaining-tokens"])
        await settled(stack)
        status, body, headers = await post(client, chat(max_tokens=40))
    assert first < 60
    assert status == 429
    assert body["error"]["type"] == "rate_limit_error"
    assert body["error"]["code"] == "tenant_tokens"
    assert 1 <= int(headers["retry-after"]) <= 60
    assert headers["x-should-retry"] == "true"
    assert first < int(headers["x-ratelimit-remaining-tokens"]) < 60


async def test_an_engine_that_fails_is_replaced_before_the_first_byte(tmp_path: Path) -> None:
    async with engine(faults=always("error")) as (_, bad), engine() as (_, good):
        stack = ThrottleStack(tmp_path, bad, good)
        async with stack.running() as client:
            results = [await post(client, chat()) for _ in range(4)]
    assert [status for status, _, _ in results] == [200] * 4
    finished = [event for event in stack.events() if isinstance(event, LlmRequestFinished)]
    assert {event.upstream for event in finished} == {"e1"}


@pytest.mark.parametrize(
    ("fault", "stream"),
    [
        *((fault, False) for fault in ("reset", "cut", "malformed", "error")),
        # Chunks of a stream are passed on undecoded: a malformed one is the client's to see.
        *((fault, True) for fault in ("reset", "cut", "error")),
    ],
)
async def test_an_answer_that_breaks_off_never_looks_complete(
    tmp_path: Path, fault: str, stream: bool
) -> None:
    options = {"faults": always(fault)}
    async with serving(tmp_path, options=options) as (stack, _), official(stack) as client:
        with pytest.raises(openai.APIError):
            answer = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "hello"}],
                max_tokens=40,
                stream=stream,
            )
            if stream:
                async for _ in answer:  # type: ignore[union-attr]
                    pass
        finished = await settled(stack)
    assert finished.outcome == "failed"
    assert finished.reason
    assert finished.output_tokens <= 40


async def test_a_usage_that_lies_is_not_charged(tmp_path: Path) -> None:
    options = {"faults": always("wrong-usage")}
    async with serving(tmp_path, options=options) as (stack, client):
        await post(client, chat(max_tokens=20))
        finished = await settled(stack)
    assert finished.output_tokens == 20


async def test_what_a_killed_process_left_open_is_settled_by_its_whole_reservation(
    tmp_path: Path,
) -> None:
    async with engine() as (_, url):
        stack = ThrottleStack(tmp_path, url)
        queued = LlmRequestQueued(
            request_id="r1", tenant="acme", endpoint=MODEL, prompt_tokens=30, max_output_tokens=LONG
        )
        waiting = queued.model_copy(update={"request_id": "r2"})
        started = LlmRequestStarted(request_id="r1", tenant="acme")
        noted = EndpointCapacityNoted(endpoint=MODEL, requests=1)
        known = [stack.endpoint, noted, TenantNoted(tenant="acme")]
        LedgerWriter(stack.broker, "throttle").write([*known, queued, waiting, started])
        async with stack.running():
            finished = await settled(stack)
            await until(lambda: "llm.rejected.v1" in stack.types())
    assert (finished.outcome, finished.prompt_tokens, finished.output_tokens) == ("lost", 30, LONG)
    # It is not started in the place that the other one leaves.
    assert stack.only(LlmRequestRejected).request_id == "r2"
    assert stack.only(LlmRequestStarted).request_id == "r1"


async def test_a_process_that_stops_settles_what_it_relays_by_what_was_made(tmp_path: Path) -> None:
    async with engine(speed=1.0) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        async with stack.running() as client:
            response = await client.post(CHAT, json=chat(max_tokens=LONG, stream=True))
            await response.content.readany()
        response.close()
    finished = stack.only(LlmRequestFinished)
    assert finished.outcome in ("failed", "cancelled")
    assert 1 <= finished.output_tokens < LONG


async def test_a_deleted_endpoint_is_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, client):
        stack.access(EndpointDeleted(endpoint=MODEL, partition=0))

        async def gone() -> bool:
            return (await post(client, chat()))[0] == 404

        async with asyncio.timeout(PATIENCE_S):
            while not await gone():
                await asyncio.sleep(0.02)


async def test_the_proxy_accepts_only_tls_with_its_certificate(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    files = {"tls_cert": tmp_path / "api.crt", "tls_key": tmp_path / "api.key"}
    stack = ThrottleStack(tmp_path, service=files)
    async with stack.running() as plain:
        with pytest.raises(aiohttp.ClientError):
            await plain.get("/v1/models")
        trust = ssl.create_default_context(cafile=tmp_path / "ca.crt")
        headers = {"authorization": f"Bearer {KEY}"}
        url = stack.url.replace("http:", "https:")
        async with aiohttp.ClientSession(url, headers=headers) as client:
            answer = await client.get("/v1/models", ssl=trust)
            assert (answer.status, (await answer.json())["object"]) == (200, "list")
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await client.get("/v1/models")


async def test_tokens_of_the_provider_are_accepted_as_keys_are(tmp_path: Path) -> None:
    issuer = Provider()
    issuer.add("r1", new_rsa())
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": issuer.shown}))
    service = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_keys": str(keys)}
    cases: list[tuple[dict[str, Any], int]] = [
        ({"tenant": "acme"}, 200),
        ({"tenant": "acme", "role": "viewer"}, 403),
        ({"tenant": "acme", "aud": "other"}, 401),
    ]
    async with engine() as (_, url):
        stack = ThrottleStack(tmp_path, url, service=service)
        async with stack.running() as client:
            assert (await post(client, chat()))[0] == 200
            for claims, status in cases:
                async with stack.client(issuer.token(**claims)) as other:
                    assert (await post(other, chat()))[0] == status, claims


async def test_a_place_that_is_free_is_not_kept_until_the_next_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends are reported in batches of a second, but never while a request waits for a place."""
    monkeypatch.setattr(reports, "SETTLE_S", 3600.0)
    async with engine() as (_, url):
        stack = ThrottleStack(tmp_path, url)
        (upstream,) = stack.endpoint.upstreams
        one = upstream.model_copy(update={"max_requests": 1})
        stack.access(stack.endpoint.model_copy(update={"upstreams": (one,)}))
        async with stack.running() as client:
            for _ in range(3):
                assert (await post(client, chat()))[0] == 200


async def test_output_and_ends_of_a_second_are_one_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record more per second and endpoint would be a third of the ledger's bytes."""
    monkeypatch.setattr(reports, "SETTLE_S", 3600.0)
    async with serving(tmp_path, SLOW) as (stack, client):
        (dispatcher,) = stack.shell._dispatchers.values()
        posts = [asyncio.create_task(post(client, chat(LONG))) for _ in range(2)]
        await until(lambda: len(dispatcher._tickets.started()) == 2)
        running, ended = dispatcher._tickets.started()
        running.made_tokens += 7
        end = RequestEnd(request_id=ended.request_id, outcome="completed", output_tokens=3)
        dispatcher.finish(ended, end)
        dispatcher._reports.hurry()
        await until(lambda: LlmRequestFinished.TYPE in stack.types())
        for request in posts:
            request.cancel()
    records = accepted(LEDGER, stack.broker.entries(LEDGER))
    types = [[raw.type for raw in record.raw()] for record in records]
    assert [TokensCharged.TYPE, LlmRequestFinished.TYPE] in types
