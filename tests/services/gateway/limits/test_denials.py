"""Denied requests are counted by principal, route and status and reported to access."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import msgspec
from fastapi import Request

from services.gateway.kafka.outbox import Outbox, OutgoingCommand
from services.gateway.limits.denials import MAX_KINDS, DeniedAttempts
from services.gateway.responses.problem import ApiError, unavailable
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import Stack


class Box:
    """An outbox whose first `failures` appends fail."""

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


async def test_attempts_are_counted_by_kind_and_kept_without_a_broker() -> None:
    box = Box(failures=1)
    denials = DeniedAttempts(cast(Outbox, box), "g")
    for status in (401, 403, 403, 404, 422, 503):
        denials.count(request("key:a"), ApiError(status, "x"))
    await denials._report()
    await denials._report()
    [letter] = box.sent
    attempts_sent = msgspec.json.decode(letter.encoded())["data"]["attempts"]
    assert [(each["status"], each["requests"]) for each in attempts_sent] == [(401, 1), (403, 2)]
    assert {each["action"] for each in attempts_sent} == {"POST /v1/keys"}


async def test_the_number_of_kinds_in_a_report_is_bounded() -> None:
    box = Box()
    denials = DeniedAttempts(cast(Outbox, box), "g")
    for number in range(5000):
        denials.count(request(f"key:{number}" * 50), ApiError(403 if number % 2 else 401, "x"))
    await denials._report()
    attempts_sent = msgspec.json.decode(box.sent[0].encoded())["data"]["attempts"]
    assert (
        len(attempts_sent) <= MAX_KINDS and sum(each["requests"] for each in attempts_sent) == 5000
    )
    assert len(box.sent[0].encoded()) < 64 * 1024


async def test_the_gateway_tells_access_of_its_own_accord(stack: Stack) -> None:
    assert (await stack.call("DELETE", "/v1/keys/secret-name", key="ada"))[0] == 403
    async with asyncio.timeout(PATIENCE_S):
        while True:
            envelopes = [
                msgspec.json.decode(e.value or b"") for e in await stack.read("access.commands", 0)
            ]
            attempts_sent = [
                each["data"]["attempts"] for each in envelopes if each["type"] == "attempts.note.v1"
            ]
            kinds = {
                (a["principal"], a["action"], a["status"]) for each in attempts_sent for a in each
            }
            if ("key:ada-key", "DELETE /v1/keys/{key_id}", 403) in kinds:
                break
            await asyncio.sleep(0.2)
    assert "secret-name" not in str(attempts_sent)
