"""Orders are completed as the agent of the session takes them, and an answer is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.executor.agents import answers
from services.executor.agents.answers import OrderAnswers
from services.executor.agents.secrets import Secrets
from services.executor.agents.sessions import Session
from services.executor.core.agents.orders import orders
from services.executor.core.agents.state import OrderPosition
from shared.bus.hosting.access import AccessFollower
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.agents import Incarnation
from shared.contracts.injections import FaultInjected
from shared.contracts.job_spec import JobSpec
from shared.contracts.secrets import SecretStored
from shared.secrets.secret_box import seal_value
from shared.secrets.secret_keys import FILE, SecretKeys, make_keys
from tests.services.executor.core.agents.history import (
    ENQUEUED,
    PLACED,
    POOL,
    SPEC,
    UUID,
    History,
    joined,
)


def session(**fields: bool) -> Session:
    incarnation = Incarnation(generation=1, uuid=UUID)
    return Session("s" * 32, "n1", "gpu", incarnation, 1, [], **fields)  # type: ignore[arg-type]


@pytest.fixture
async def completing(tmp_path: Path) -> AsyncIterator[OrderAnswers]:
    make_keys(tmp_path / FILE)
    sealed = seal_value(SecretKeys(tmp_path / FILE), "ada", "db", 1, "sesame")
    stored = SecretStored(
        tenant="ada", name="db", version=1, sealed=sealed, set_by="key:a", set_at=1
    )
    broker = MemoryBroker()
    LedgerWriter(broker, "access").write([POOL, stored])
    access = AccessFollower(lambda: MemoryLog(broker))
    following = asyncio.create_task(access.run())
    await access.caught_up.wait()

    async def number_of(tenant: str) -> int | None:
        return 4

    yield OrderAnswers(number_of, Secrets(access, tmp_path / FILE, None))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def history(env: dict[str, str]) -> History:
    spec = JobSpec.model_validate({**SPEC.model_dump(), "env": env})
    enqueued = ENQUEUED.model_copy(update={"spec": spec})
    return History(POOL, joined("n1"), joined("n2"), enqueued, PLACED)


async def test_an_agent_gets_values_apart_and_an_earlier_one_as_variables(
    completing: OrderAnswers,
) -> None:
    state = history({"PASS": "secret://db", "A": "1"}).state
    for keeps, env, secrets in (
        (True, {"PASS": "secret://db", "A": "1"}, {"PASS": "sesame"}),
        (False, {"PASS": "sesame", "A": "1"}, {}),
    ):
        listed = orders(state, "n1", OrderPosition())
        answer = await completing.answer(session(keeps_secrets=keeps), [], state, listed, 0)
        launches = [order.launch for order in answer.orders if order.launch is not None]
        assert [launch.env for launch in launches] == [env, env]
        assert [launch.secrets for launch in launches] == [secrets, secrets]
        assert {launch.tenant_number for launch in launches} == {4}
    assert "sesame" not in repr(state)


async def test_an_earlier_agent_gets_a_start_that_fails_for_a_job_with_a_bundle(
    completing: OrderAnswers,
) -> None:
    spec = SPEC.model_copy(update={"bundle": f"sha256:{'0' * 64}", "workdir": None})
    state = History(POOL, joined("n1"), ENQUEUED.model_copy(update={"spec": spec}), PLACED).state
    for takes, reason in ((True, ""), (False, "bundle_unreachable")):
        listed = orders(state, "n1", OrderPosition())
        answer = await completing.answer(session(takes_bundles=takes), [], state, listed, 0)
        failures = [order.launch.failure for order in answer.orders if order.launch is not None]
        assert [failure.reason if failure else "" for failure in failures] == [reason, reason]


async def test_an_answer_ends_where_it_is_large_and_the_next_one_goes_on(
    completing: OrderAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = history({"A": "x" * 90}).state
    monkeypatch.setattr(answers, "MAX_CHARS", 50)
    after, answered = OrderPosition(), list[list[str]]()
    while not answered or answered[-1]:
        listed = orders(state, "n1", after)
        answer = await completing.answer(session(), [], state, listed, 0)
        answered.append([order.kind for order in answer.orders])
        after = OrderPosition.of(answer.through)
    whole = [order.kind for order in orders(state, "n1", OrderPosition()).orders]
    assert whole.count("prepare") == 2
    assert [kind for kinds in answered for kind in kinds] == whole
    assert max(kinds.count("prepare") for kinds in answered) == 1


async def test_what_is_left_of_a_fault_is_counted_by_the_time_of_the_ledger(
    completing: OrderAnswers,
) -> None:
    injected = FaultInjected(node_id="n1", fault="slow", factor=2.5, until=61_000)
    state = History(POOL, joined("n1"), injected).state
    listed = orders(state, "n1", OrderPosition())
    answer = await completing.answer(session(injects=True), [], state, listed, 41_000)
    left = [order.injection.left_s for order in answer.orders if order.injection is not None]
    assert left == [20]
