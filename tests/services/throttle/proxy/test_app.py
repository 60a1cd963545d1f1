"""Other paths and methods, and failures of the service, are errors of the OpenAI API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from services.throttle.proxy.app import allowed_methods
from services.throttle.proxy.bodies import BodyReader
from tests.services.throttle.proxy.test_serve import CHAT, official, post, serving
from tests.services.throttle.shell import chat


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "allow"),
    [
        ("POST", "/chat/completions", 404, "unknown_url", None),
        ("GET", "/", 404, "unknown_url", None),
        ("POST", "/v1/audio/speech", 404, "unknown_url", None),
        ("GET", CHAT, 405, "method_not_allowed", "POST"),
        ("POST", "/v1/models", 405, "method_not_allowed", "GET"),
        ("DELETE", "/v1/models/org/Chat-7B", 405, "method_not_allowed", "GET"),
    ],
)
async def test_what_is_no_route_is_an_error_with_the_routes(
    method: str, path: str, status: int, code: str, allow: str | None, tmp_path: Path
) -> None:
    async with serving(tmp_path) as (_, client), client.request(method, path) as response:
        error = (await response.json())["error"]
    assert (response.status, error["code"]) == (status, code)
    assert response.headers["x-should-retry"] == "false"
    assert response.headers.get("allow") == allow
    assert error["message"].startswith(("path: ", "method: "))


async def test_the_official_client_with_a_wrong_address_is_given_the_right_one(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as (stack, _), official(stack) as client:
        misled = client.with_options(base_url=stack.url)
        with pytest.raises(openai.NotFoundError, match="/v1/chat/completions"):
            await misled.chat.completions.create(model="m", messages=[])


async def test_a_failure_of_the_service_is_an_error_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(BodyReader, "read", fail)
    async with serving(tmp_path) as (_, client):
        status, body, _ = await post(client, chat())
    assert (status, body["error"]["code"]) == (500, "internal_error")
    assert "KeyError" in body["error"]["message"] and "secret" not in body["error"]["message"]


def test_only_routes_have_methods() -> None:
    assert (allowed_methods("/v1/embeddings"), allowed_methods("/v1/models")) == ("POST", "GET")
    assert allowed_methods("/embeddings") == allowed_methods("/v1/modelsx") == ""
