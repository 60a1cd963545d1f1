"""Who is turned away is counted and told to access, by principal, route and status."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import msgspec
from fastapi import Request

from services.gateway.attempts import MAX_KINDS, DeniedAttempts
from services.gateway.outbox import Outbox, OutgoingCommand
from services.gateway.problem import ApiError, unavailable
from tests.services.gateway.stack import Stack


class Box:
    """An outbox that fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.sent: list[OutgoingCommand] = []

    async def put(self, topic: str, partition: int, letter: OutgoingCommand) -> None:
        if self.failures:
            self.failures -= 1
            raise unavailable("broker_unavailable", "")
        self.sent.append(letter)


def request(principal: str, route: str = "/v1/keys") -> Request:
    scope = {
        "type": "http",
        "method": "POST",
        "route": SimpleNamespace(path=route),
        "state": {"principal": principal},
    }
    return Request(scope)


async def test_kinds_are_counted_and_nothing_is_lost_while_the_broker_is_away() -> None:
    box = Box(failures=1)
    attempts = DeniedAttempts(cast(Outbox, box), "g")
    for status in (401, 403, 403, 404, 422, 503):
        attempts.count(request("key:a"), ApiError(status, "x"))
    await attempts._report()
    await attempts._report()
    [letter] = box.sent
    told = msgspec.json.decode(letter.encoded())["data"]["attempts"]
    assert [(each["status"], each["requests"]) for each in told] == [(401, 1), (403, 2)]
    assert {each["action"] for each in told} == {"POST /v1/keys"}


async def test_however_many_try_a_note_stays_small() -> None:
    box = Box()
    attempts = DeniedAttempts(cast(Outbox, box), "g")
    for number in range(5000):
        attempts.count(request(f"key:{number}" * 50), ApiError(403 if number % 2 else 401, "x"))
    await attempts._report()
    told = msgspec.json.decode(box.sent[0].encoded())["data"]["attempts"]
    assert len(told) <= MAX_KINDS and sum(each["requests"] for each in told) == 5000
    assert len(box.sent[0].encoded()) < 64 * 1024


async def test_the_gateway_tells_access_of_its_own_accord(stack: Stack) -> None:
    assert (await stack.call("DELETE", "/v1/keys/secret-name", key="ada"))[0] == 403
    async with asyncio.timeout(20):
        while True:
            found = [
                msgspec.json.decode(e.value or b"") for e in await stack.read("access.commands", 0)
            ]
            told = [
                each["data"]["attempts"] for each in found if each["type"] == "attempts.note.v1"
            ]
            kinds = {(a["principal"], a["action"], a["status"]) for each in told for a in each}
            if ("key:ada-key", "DELETE /v1/keys/{key_id}", 403) in kinds:
                break
            await asyncio.sleep(0.2)
    assert "secret-name" not in str(told)
