"""Of a flood of refused requests the ledger has a bounded part, and each gets its answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.proxy import unrecorded
from services.throttle.proxy.unrecorded import RECORDED, UnrecordedRefusals
from shared.contracts.endpoints import TokenBudget
from shared.contracts.llm import LlmRequestRejected
from shared.http.rate import NS, Rate
from tests.harness.decider import AT, run
from tests.services.throttle.llm import ended, endpoint, lane, local_request, serve_command
from tests.services.throttle.proxy.test_serve import post, serving
from tests.services.throttle.shell import chat

TOKENS = TokenBudget(holder="tenant", unit="tokens", limit=100, memory="window", period_s=60)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.ns = NS

    def __call__(self) -> int:
        return self.ns


def test_beyond_the_rate_a_refusal_is_not_recorded_and_has_the_same_reason() -> None:
    state = lane(settings=endpoint(budgets=(TOKENS,)))
    (rejected,) = run(Throttle(), state, [local_request("r1", prompt=10, most=200)])
    assert isinstance(rejected, LlmRequestRejected)
    counted, clock = list[tuple[str, str]](), Clock()
    refusals = UnrecordedRefusals(lambda *of: counted.append(of), clock)
    command = serve_command("r2", prompt=10, most=200)
    for _ in range(RECORDED.burst):
        assert refusals.refuse(state, command, AT) is None
        refusals.note(command)
    refusal = refusals.refuse(state, command, AT)
    assert refusal is not None and isinstance(rejected, LlmRequestRejected)
    assert (refusal.reason, refusal.detail) == (rejected.reason, rejected.detail)
    assert counted == [("chat", rejected.reason)]
    assert refusals.refuse(state, serve_command("r3", "b", 10, 200), AT) is None
    clock.ns += round(NS / RECORDED.per_s)
    assert refusals.refuse(state, command, AT) is None


def test_a_request_that_has_room_is_decided_whoever_sends_it() -> None:
    state = lane(settings=endpoint(budgets=(TOKENS,)))
    run(Throttle(), state, [local_request("r1", prompt=10, most=80), ended("r1", output=80)])
    refusals = UnrecordedRefusals(clock_ns=Clock())
    for _ in range(RECORDED.burst):
        refusals.note(serve_command("r2", prompt=10, most=20))
    assert refusals.refuse(state, serve_command("r3", prompt=10, most=20), AT) is not None
    assert refusals.refuse(state, serve_command("r4", prompt=5, most=5), AT) is None
    assert refusals.refuse(state, serve_command("r5", prompt=10, most=20), AT + 120_000) is None


async def test_a_flood_of_refused_requests_leaves_few_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unrecorded, "RECORDED", Rate(0.001, 3))
    async with serving(tmp_path, budgets=(TOKENS,)) as (stack, client):
        answers = [await post(client, chat(max_tokens=500)) for _ in range(10)]
        served, _, _ = await post(client, chat())
    assert {answer[0] for answer in answers} == {400}
    assert {answer[1]["error"]["message"] for answer in answers} == {
        answers[0][1]["error"]["message"]
    }
    assert all("x-ratelimit-remaining-tokens" in answer[2] for answer in answers)
    assert stack.types().count("llm.rejected.v1") == 3
    assert served == 200
