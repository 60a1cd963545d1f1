"""The official client raises the error that is meant, and retries where it may help."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from aiohttp import web

from services.throttle.relay.errors import VERDICTS, ErrorAnswer, refuse, retry_advice
from tests.patience import PATIENCE_S
from tests.services.throttle.relay.serving import serving

MESSAGES: Any = [{"role": "user", "content": "hi"}]


@asynccontextmanager
async def refused(error: ErrorAnswer, retries: int = 0) -> AsyncIterator[tuple[Any, list[float]]]:
    """Yield a client whose every request gets the error, and the times of its requests."""
    times: list[float] = []

    async def answer(_: web.Request) -> web.Response:
        times.append(time.monotonic())
        return web.Response(
            status=error.status,
            body=error.body,
            headers=error.headers,
            content_type="application/json",
        )

    async with serving(answer) as url:
        client = openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key="k", max_retries=retries, timeout=PATIENCE_S
        )
        async with client:
            yield client.chat.completions, times


@pytest.mark.parametrize(
    ("reason", "raised"),
    [
        ("queue_full", openai.RateLimitError),
        ("tenant_tokens", openai.RateLimitError),
        ("too_large", openai.BadRequestError),
        ("invalid_api_key", openai.AuthenticationError),
        ("not_allowed", openai.PermissionDeniedError),
        ("model_not_found", openai.NotFoundError),
        ("already_served", openai.ConflictError),
        ("upstream_failed", openai.InternalServerError),
        ("endpoint_unavailable", openai.InternalServerError),
    ],
)
async def test_the_official_client_raises_its_error(reason: str, raised: Any) -> None:
    async with refused(refuse(reason, "the message", param="model")) as (chat, _):
        with pytest.raises(raised) as caught:
            await chat.create(model="m", messages=MESSAGES)
    error: Any = caught.value
    assert "the message" in error.message
    assert (error.code, error.param) == (reason, "model")
    assert error.type == refuse(reason, "").type


async def test_the_official_client_comes_again_after_the_advised_wait() -> None:
    async with refused(refuse("queue_full", "m", retry_after_s=0.05), retries=2) as (chat, times):
        with pytest.raises(openai.RateLimitError):
            await chat.create(model="m", messages=MESSAGES)
    assert len(times) == 3
    assert times[1] - times[0] >= 0.05


@pytest.mark.parametrize("reason", ["already_served", "tenant_money", "internal_error"])
async def test_the_official_client_does_not_repeat_what_is_refused_for_good(reason: str) -> None:
    async with refused(refuse(reason, "m"), retries=2) as (chat, times):
        with pytest.raises(openai.APIStatusError):
            await chat.create(model="m", messages=MESSAGES)
    await asyncio.sleep(0)
    assert len(times) == 1


@pytest.mark.parametrize(
    ("wait_s", "seconds", "ms"),
    [
        (0.25, "1", "250"),
        (2.0, "2", "2000"),
        (2.0001, "3", "2001"),
        (1e9, "60", "60000"),
        (-1, "1", "0"),
    ],
)
def test_the_advised_wait_is_bounded(wait_s: float, seconds: str, ms: str) -> None:
    advice = retry_advice(wait_s)
    assert (advice["retry-after"], advice["retry-after-ms"]) == (seconds, ms)


@pytest.mark.parametrize("reason", sorted(VERDICTS))
def test_a_refusal_advises_a_retry_or_says_that_none_helps(reason: str) -> None:
    error = refuse(reason, "m", headers={"x-request-id": "r"})
    assert error.headers["x-request-id"] == "r"
    assert ("retry-after" in error.headers) is (error.headers["x-should-retry"] == "true")
    # A shed request is 429 with the type by which LiteLLM knows it.
    assert (error.status == 429) is (error.type == "rate_limit_error")


def test_a_budget_that_is_not_refilled_is_refused_for_good() -> None:
    assert refuse("user_money", "m").type == "insufficient_quota"
    assert refuse("user_money", "m").headers["x-should-retry"] == "false"
    assert refuse("user_money", "m", retry_after_s=5).headers["retry-after"] == "5"


def test_an_unknown_reason_is_refused_by_its_time_of_retry() -> None:
    assert refuse("new_rule", "m").status == 400
    assert refuse("new_rule", "m", retry_after_s=1).status == 429


def test_an_error_of_a_stream_is_an_event() -> None:
    error = refuse("upstream_failed", 'a "quoted"\nline')
    assert error.event == b"data: " + error.body + b"\n\n"
    assert b"\n" not in error.body
