"""Facts have a place, decisions inherit their cause, and bad bytes are rejected as they lie."""

from __future__ import annotations

from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_commands import CancelJob
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Decision, Fact, Input, Undecodable

EVENT = CommandAccepted(command_id="c1", command_type="job.cancel.v1")


def test_the_place_of_a_fact_is_unique_in_its_ledger_and_its_id_in_all() -> None:
    fact = Fact(EVENT, "admission", 2, 17, 3, 1_000)
    assert (fact.place, fact.id) == ("2/17/3", "admission/2/17/3")


def test_a_decision_has_the_cause_and_the_trace_of_its_input() -> None:
    arrived = Input("commands", "c1", CancelJob(job_id="j1"), traceparent="00-a-b-01")
    assert arrived.decision(EVENT) == Decision(EVENT, "c1", "00-a-b-01")


def test_undecodable_bytes_are_rejected_with_their_place_and_digest() -> None:
    bad = Undecodable("commands", 2, 9, "no JSON", "f" * 64)
    assert bad.rejection() == InputRejected(
        topic="commands", partition=2, offset=9, reason="no JSON", sha256="f" * 64
    )
