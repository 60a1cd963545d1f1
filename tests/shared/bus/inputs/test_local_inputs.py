from __future__ import annotations

import pytest

from shared.bus.inputs.local_inputs import LocalInputs
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_commands import CancelJob
from shared.contracts.llm import EngineAdvanced
from shared.ledger.decider import Fact, Input
from shared.ledger.errors import Busy, LaneRevoked


@pytest.fixture
def inputs() -> LocalInputs:
    return LocalInputs("admission-0")


def message(id: str) -> Input:
    return Input("local", id, CancelJob(job_id="job"))


def fact(cause: str, seq: int = 1) -> Fact:
    event = CommandAccepted(command_id=cause, command_type="job.cancel.v1", of="job")
    return Fact(event, "admission", 0, seq, 0, 1, cause)


async def test_inputs_stay_in_order_until_they_are_decided(inputs: LocalInputs) -> None:
    for id in "abc":
        inputs.add(message(id))
    assert [local.input.id for local in inputs.oldest(2)] == ["a", "b"]
    inputs.resolve(inputs.oldest(1), [])
    assert [local.input.id for local in inputs.oldest(9)] == ["b", "c"]
    assert len(inputs) == 2


async def test_a_plain_message_becomes_an_input_with_an_id_of_its_own(inputs: LocalInputs) -> None:
    for _ in range(2):
        inputs.add(CancelJob(job_id="job"))
    first, second = (local.input for local in inputs.oldest(2))
    assert first.source == "local" and first.message == CancelJob(job_id="job")
    assert first.id != second.id


async def test_an_input_gets_the_facts_that_it_caused(inputs: LocalInputs) -> None:
    one, two, silent = (inputs.add(message(id)) for id in ("one", "two", "silent"))
    facts = [fact("one"), fact("two"), fact("one"), fact("of a command")]
    inputs.resolve(inputs.oldest(3), facts)
    assert await one == [facts[0], facts[2]]
    assert await two == [facts[1]]
    assert await silent == []


async def test_facts_that_seemed_lost_resolve_only_their_causes(inputs: LocalInputs) -> None:
    late, pending = inputs.add(message("late")), inputs.add(message("pending"))
    inputs.resolve_causes([fact("late")])
    assert await late == [fact("late")]
    assert not pending.done()
    assert [local.input.id for local in inputs.oldest(9)] == ["pending"]


async def test_a_cancelled_input_is_decided_without_its_caller(inputs: LocalInputs) -> None:
    inputs.add(message("a")).cancel()
    inputs.resolve(inputs.oldest(1), [fact("a")])
    assert len(inputs) == 0


async def test_undecided_inputs_fail_when_the_lane_is_revoked(inputs: LocalInputs) -> None:
    pending = inputs.add(message("a"))
    inputs.abandon()
    assert len(inputs) == 0
    with pytest.raises(LaneRevoked, match="admission-0"):
        await pending


async def test_too_many_inputs_are_refused(
    inputs: LocalInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.inputs.local_inputs.MAX_LOCALS", 1)
    inputs.add(message("a"))
    with pytest.raises(Busy, match="admission-0"):
        inputs.add(message("b"))


async def test_an_input_of_the_lane_itself_is_decided_first(inputs: LocalInputs) -> None:
    inputs.add(message("a"))
    inputs.add_first(EngineAdvanced(made=()))
    first, second = inputs.oldest(2)
    assert (first.input.source, second.input.id) == ("local", "a")
    assert isinstance(first.input.message, EngineAdvanced)
    inputs.resolve([first, second], [])
    assert len(inputs) == 0
