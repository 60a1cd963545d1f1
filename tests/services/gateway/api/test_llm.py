"""Endpoints, LLM requests and their use over HTTP: each tenant sees its own alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shared.contracts.access import TenantRegistered
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted, TokenBudget, Upstream
from shared.contracts.llm import (
    EndpointCapacityNoted,
    EngineStanding,
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)
from tests.services.gateway.stack import Stack

ENGINE = Upstream(name="a", url="http://engine-1.test:8000", key="engine-key")
LLAMA = EndpointConfigured(
    endpoint="meta/Llama-3",
    partition=3,
    upstreams=(ENGINE,),
    tenants=("ada",),
    budgets=(
        TokenBudget(holder="tenant", unit="tokens", limit=100),
        TokenBudget(holder="user", unit="money", limit=5, memory="half_life", period_s=31_536_000),
        TokenBudget(holder="application", unit="requests", limit=9, memory="window"),
    ),
)


@pytest.fixture(scope="module")
def rows(stack: Stack) -> Stack:
    asyncio.run(fill(stack))
    return stack


async def fill(stack: Stack) -> None:
    await stack.clear_rows()
    gone = EndpointConfigured(endpoint="gone", partition=1)
    tenants = [TenantRegistered(tenant=name, default_pool="main") for name in ("ada", "bob")]
    deleted = EndpointDeleted(endpoint="gone", partition=1)
    await stack.project("access", 0, 1, LLAMA, gone, deleted, *tenants)
    for seq, tenant in enumerate(("ada", "bob"), 10):
        await stack.project("throttle", 3, seq, *served(f"{tenant}-1", tenant, 7, "completed"))
        await stack.project("throttle", 3, seq + 10, *served(f"{tenant}-2", tenant, 3, "cancelled"))
        rejected = LlmRequestRejected(
            request_id=f"{tenant}-3", tenant=tenant, reason="queue_full", retry_after_s=2
        )
        await stack.project("throttle", 3, seq + 20, rejected)


def served(
    request_id: str, tenant: str, output: int, outcome: str
) -> tuple[LlmRequestQueued, LlmRequestStarted, LlmRequestFinished]:
    of = {"request_id": request_id, "tenant": tenant}
    what = {"endpoint": LLAMA.endpoint, "user": f"{tenant}-user", "model": "", "ahead": 2}
    size = {"prompt_tokens": 10, "max_output_tokens": 50, "wait_s": 1.5}
    end = {"prompt_tokens": 10, "output_tokens": output, "outcome": outcome, "cost": 0.5}
    return (
        LlmRequestQueued.model_validate({**of, **what, **size}),
        LlmRequestStarted.model_validate({**of, "waited_ms": 900}),
        LlmRequestFinished.model_validate({**of, **end, "upstream": "a"}),
    )


async def test_an_endpoint_is_shown_by_its_name_with_slashes(rows: Stack) -> None:
    for path in ("/v1/endpoints/meta/Llama-3", "/v1/endpoints/meta%2FLlama-3"):
        status, content, _ = await rows.call("GET", path, key="op")
        assert (status, content["endpoint"], content["partition"]) == (200, "meta/Llama-3", 3)
    settings = EndpointConfigured.model_validate({**content["settings"], "partition": 3})
    assert settings == LLAMA
    assert len(content["version"]) == 16 and content["open"]


async def test_tenants_see_secrets_names_but_no_address_and_no_other_tenant(rows: Stack) -> None:
    _, own, _ = await rows.call("GET", "/v1/endpoints/meta/Llama-3")
    _, other, _ = await rows.call("GET", "/v1/endpoints/meta/Llama-3", key="bob")
    assert (own["open"], other["open"]) == (True, False)
    for content in (own, other):
        assert content["settings"]["upstreams"][0]["key"] == "engine-key"
        assert "engine-1" not in str(content) and "tenants" not in content["settings"]


async def test_a_deleted_endpoint_is_not_there(rows: Stack) -> None:
    _, content, _ = await rows.call("GET", "/v1/endpoints")
    assert [row["endpoint"] for row in content["items"]] == ["meta/Llama-3"]
    assert (await rows.call("GET", "/v1/endpoints/gone"))[0] == 404
    assert (await rows.call("GET", "/v1/endpoints/a%20b"))[0] == 422


async def test_requests_are_filtered_and_one_is_shown(rows: Stack) -> None:
    for query, ids in {
        "": ["ada-3", "ada-2", "ada-1"],
        "state=finished": ["ada-2", "ada-1"],
        "user=ada-user": ["ada-2", "ada-1"],
        "user=bob-user": [],
        "endpoint=meta/Llama-3": ["ada-2", "ada-1"],
        "application=none": [],
    }.items():
        _, content, _ = await rows.call("GET", f"/v1/llm/requests?{query}")
        assert [row["request_id"] for row in content["items"]] == ids, query
    _, request, _ = await rows.call("GET", "/v1/llm/requests/ada-2")
    assert (request["outcome"], request["user"], request["cost"]) == ("cancelled", "ada-user", 0.5)
    assert (request["ahead"], request["wait_s"], request["waited_ms"]) == (2, 1.5, 900)
    assert (await rows.call("GET", "/v1/llm/requests/bob-1"))[0] == 404
    assert (await rows.call("GET", "/v1/llm/requests/bob-1?tenant=bob"))[0] == 404
    assert (await rows.call("GET", "/v1/llm/requests?tenant=bob"))[0] == 404
    _, content, _ = await rows.call("GET", "/v1/llm/requests?tenant=bob", key="op")
    assert {row["tenant"] for row in content["items"]} == {"bob"}
    assert (await rows.call("GET", "/v1/llm/requests?tenant=no", key="op"))[0] == 422


async def usage(stack: Stack, by: str, key: str = "ada") -> list[dict[str, Any]]:
    status, content, _ = await stack.call("GET", f"/v1/llm/usage?by={by}", key=key)
    assert status == 200
    items: list[dict[str, Any]] = content["items"]
    return items


async def test_use_is_summed_by_what_is_asked_for(rows: Stack) -> None:
    [own] = await usage(rows, "tenant")
    assert (own["tenant"], own["requests"], own["rejected"]) == ("ada", 2, 1)
    assert (own["output_tokens"], own["wasted_tokens"], own["cost"]) == (10, 3, 1.0)
    assert (own["waited_ms"], own["longest_wait_ms"], own["estimated_ms"]) == (1800, 900, 3000)
    for by in ("tenant", "user", "application", "model", "endpoint", "day", "hour"):
        assert sum(row["requests"] for row in await usage(rows, by)) == 2, by
        assert sum(row["requests"] for row in await usage(rows, by, "op")) == 4, by
    assert {row["user"] for row in await usage(rows, "user", "op")} >= {"ada-user", "bob-user"}
    assert (await rows.call("GET", "/v1/llm/usage?by=key"))[0] == 422
    _, content, _ = await rows.call("GET", "/v1/llm/usage?since=4000000")
    assert content["items"] == []


async def test_rejections_are_counted_by_reason(rows: Stack) -> None:
    _, content, _ = await rows.call("GET", "/v1/llm/rejections")
    [row] = content["items"]
    assert (row["tenant"], row["reason"], row["rejected"]) == ("ada", "queue_full", 1)
    _, content, _ = await rows.call("GET", "/v1/llm/rejections", key="op")
    assert len(content["items"]) == 2


async def test_budgets_are_listed_with_what_is_left(rows: Stack) -> None:
    status, content, _ = await rows.call("GET", "/v1/llm/limits")
    assert status == 200
    tenant, user, application = content["items"]
    assert (tenant["kind"], tenant["holder"], tenant["used"]) == ("tenant", "ada", 30)
    assert tenant["left"] == 70
    assert user["kind"] == "user" and application["holder"] is None
    assert (await rows.call("GET", "/v1/llm/limits", key="bob"))[1]["items"] == []
    _, content, _ = await rows.call("GET", "/v1/llm/limits", key="op")
    assert {row["holder"] for row in content["items"]} >= {"ada", "bob"}


async def test_keys_of_a_tenant_are_listed_without_revoked_ones(rows: Stack) -> None:
    status, content, _ = await rows.call("GET", "/v1/tenants/ada/keys")
    assert status == 200
    # Other tests have made keys too.
    known = {row["key_id"]: row for row in content["items"]}
    assert known.keys() >= {"ada-key", "ada-view"} and not known.keys() & {"old-key", "bob-key"}
    assert known["ada-key"] == {
        "key_id": "ada-key",
        "tenant": "ada",
        "role": "submitter",
        "models": [],
        "user": None,
        "pools": [],
        "highest_class": None,
        "max_job_gpus": None,
    }
    assert "s1" not in str(content)
    assert (await rows.call("GET", "/v1/tenants/bob/keys"))[0] == 404


async def test_keys_are_listed_to_operators_all_and_to_others_those_of_their_tenant(
    rows: Stack,
) -> None:
    _, own, _ = await rows.call("GET", "/v1/keys")
    _, every, _ = await rows.call("GET", "/v1/keys", key="op")
    assert {row["tenant"] for row in own["items"]} == {"ada"}
    assert {row["tenant"] for row in every["items"]} >= {"ada", "bob", None}
    for key in ("ada", "op"):
        _, alias, _ = await rows.call("GET", "/v1/tenants/ada/keys", key=key)
        assert (await rows.call("GET", "/v1/keys?tenant=ada", key=key))[1] == alias
        assert {row["tenant"] for row in alias["items"]} == {"ada"}
    assert (await rows.call("GET", "/v1/keys?tenant=bob"))[0] == 404
    assert (await rows.call("GET", "/v1/keys?tenant=none", key="op"))[0] == 404
    assert not {"sha256", "secret"} & every["items"][0].keys()


async def test_gaps_of_service_are_shown_to_every_tenant(rows: Stack) -> None:
    minute, noon = 60_000, 1_700_000_040_000
    for seq, at in enumerate((noon + 1, noon + minute, noon + 2 * minute), 100):
        waiting = [
            LlmRequestQueued(
                request_id=f"{tenant}-{seq}",
                tenant=tenant,
                endpoint=LLAMA.endpoint,
                prompt_tokens=10,
                max_output_tokens=5,
            )
            for tenant in ("ada", "bob")
        ]
        start = LlmRequestStarted(request_id=f"ada-{seq}", tenant="ada")
        again = waiting[0].model_copy(update={"request_id": f"ada-again-{seq}"})
        await rows.project("throttle", 2, seq, *waiting, again, start, at=at)
    _, content, _ = await rows.call("GET", f"/v1/llm/fairness?endpoint={LLAMA.endpoint}", key="bob")
    (row,) = content["items"]
    assert (row["began_at"], row["span_ms"], row["tenants"]) == (noon + minute, minute, 2)
    assert (row["largest_gap"], row["mean_gap"]) == (10.0, 10.0)
    _, content, _ = await rows.call("GET", f"/v1/llm/fairness?since={noon + 2 * minute}")
    assert content["items"] == []


async def limits(stack: Stack) -> dict[str, dict[str, Any]]:
    """Return the first listed budget of each kind of holder."""
    _, content, _ = await stack.call("GET", "/v1/llm/limits")
    return {row["kind"]: row for row in reversed(content["items"])}


async def test_what_an_open_request_holds_is_not_left_of_a_budget(rows: Stack) -> None:
    queued, started, finished = served("ada-9", "ada", 1, "completed")
    before = (await limits(rows))["tenant"]
    await rows.project("throttle", 3, 60, queued.model_copy(update={"max_output_tokens": 20}))
    for message in (started, finished):
        tenant = (await limits(rows))["tenant"]
        assert (tenant["used"], tenant["held"] - before["held"]) == (30, 30)
        assert tenant["left"] == max(0, 100 - 30 - tenant["held"])
        await rows.project("throttle", 3, 61 if message is started else 62, message)
    after = (await limits(rows))["tenant"]
    assert (after["used"], after["held"]) == (41, before["held"])


async def test_a_budget_counts_what_ended_after_it_was_set(rows: Stack) -> None:
    before = (await limits(rows))["tenant"]
    assert (before["since"], before["used"]) == (0, 41)
    await rows.project("throttle", 3, 15, LLAMA)
    tenant = (await limits(rows))["tenant"]
    assert (tenant["since"], tenant["used"]) == (1015, 24), "ada-1 had ended before"
    wider = LLAMA.budgets[0].model_copy(update={"limit": 900})
    await rows.project("throttle", 3, 16, LLAMA.model_copy(update={"budgets": (wider,)}))
    tenant = (await limits(rows))["tenant"]
    assert (tenant["since"], tenant["used"]) == (1015, 24)


async def test_engines_are_shown_and_their_loads_to_operators_alone(rows: Stack) -> None:
    load = {"in_flight": 3, "waiting": 1, "kv_ratio": 0.5}
    engine = EngineStanding(name="a", available=True, **load)
    noted = EndpointCapacityNoted(endpoint=LLAMA.endpoint, requests=64, engines=(engine,))
    await rows.project("throttle", 3, 70, noted)
    _, content, _ = await rows.call("GET", "/v1/endpoints/meta/Llama-3", key="op")
    shown = {"name": "a", "available": True, "reason": "", "since": 1070}
    assert content["engines"] == [{**shown, **load}]
    assert content["noted_at"] == 1070
    _, content, _ = await rows.call("GET", "/v1/endpoints")
    assert content["items"][0]["engines"] == [shown]
