"""Rights that end while a request waits: of a key, a tenant, and a deleted endpoint's lane."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.throttle.core.decide import Throttle
from shared.contracts.access import KeyRevoked, TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.endpoints import EndpointDeleted
from shared.contracts.llm import LlmRequestFinished, LlmRequestRejected, LlmRequestStarted
from tests.harness.decider import an_input, run
from tests.patience import PATIENCE_S, until
from tests.services.throttle.llm import command, ended, endpoint, lane, local_request
from tests.services.throttle.proxy.test_serve import LONG, SLOW, engine, post
from tests.services.throttle.shell import MODEL, ThrottleStack, chat


def kinds(events: list[Any]) -> list[tuple[str, str, str]]:
    """Return starts and rejections: type, request and reason."""
    return [
        (event.TYPE, event.request_id, getattr(event, "reason", ""))
        for event in events
        if isinstance(event, LlmRequestStarted | LlmRequestRejected)
    ]


def test_no_engine_of_another_endpoint_gets_what_waited_at_a_deleted_one() -> None:
    state = lane(capacity=1, settings=endpoint())
    run(Throttle(), state, [local_request("r1"), local_request("r2"), command("r3")])
    deleted = an_input(EndpointDeleted(endpoint="chat", partition=0), "access")
    other = an_input(endpoint(endpoint="other", tenants=("b",)), "access")
    events = run(Throttle(), state, [deleted, other, ended("r1")])
    assert kinds(events) == [
        ("llm.rejected.v1", "r2", "endpoint_deleted"),
        ("llm.rejected.v1", "r3", "endpoint_deleted"),
    ]
    assert not state.waiting


@pytest.mark.parametrize(
    ("change", "reason"),
    [(endpoint(tenants=("b",)), "not_allowed"), (TenantRetired(tenant="a"), "unknown_tenant")],
)
def test_a_tenant_that_lost_its_right_is_not_served_what_waited(change: Event, reason: str) -> None:
    state = lane(capacity=1, settings=endpoint())
    registered = an_input(TenantRegistered(tenant="a", default_pool="main"), "access")
    run(Throttle(), state, [registered, local_request("r1"), local_request("r2")])
    run(Throttle(), state, [local_request("r3", "b"), an_input(change, "access")])
    events = run(Throttle(), state, [ended("r1"), ended("r3")])
    assert sorted(kinds(events)) == [
        ("llm.rejected.v1", "r2", reason),
        ("llm.started.v1", "r3", ""),
    ]


async def test_a_key_that_is_revoked_while_its_request_waits_is_not_served(tmp_path: Path) -> None:
    async with engine(speed=SLOW) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        (upstream,) = stack.endpoint.upstreams
        small = upstream.model_copy(update={"max_requests": 1})
        stack.access(stack.endpoint.model_copy(update={"upstreams": (small,)}))
        async with stack.running() as client, stack.client("other-1.sesame") as other:
            first = asyncio.create_task(post(other, chat(max_tokens=LONG)))
            await until(lambda: len(stack.lane.state.running) == 1)
            second = asyncio.create_task(post(client, chat(max_tokens=LONG)))
            await until(lambda: len(stack.lane.state.waiting) == 1)
            stack.access(KeyRevoked(key_id="acme-1"))
            async with asyncio.timeout(PATIENCE_S):
                while (await post(client, b"{"))[0] != 401:
                    await asyncio.sleep(0.02)
            first.cancel()
            status, body, _ = await second
            await until(lambda: stack.types().count("llm.finished.v1") == 2)
            ends = [event for event in stack.events() if isinstance(event, LlmRequestFinished)]
    assert (status, body["error"]["code"]) == (401, "invalid_api_key")
    assert (ends[-1].tenant, ends[-1].prompt_tokens, ends[-1].output_tokens) == ("acme", 0, 0)


async def test_a_lane_that_another_endpoint_holds_serves_no_request_of_the_former(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.throttle.proxy.lookup.CATCH_UP_S", 0.05)
    async with engine() as (_, url):
        stack = ThrottleStack(tmp_path, url)
        async with stack.running() as client:
            assert (await post(client, chat()))[0] == 200
            # The proxy knows it already, and the lane does not.
            deleted = EndpointDeleted(endpoint=MODEL, partition=0)
            stack.access(deleted, stack.endpoint.model_copy(update={"endpoint": "org/next"}))
            status, body, _ = await post(client, chat() | {"model": "org/next"})
    assert (status, body["error"]["code"]) == (503, "endpoint_unavailable")
    assert stack.types().count("llm.queued.v1") == 1
