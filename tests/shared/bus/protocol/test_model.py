"""The protocol survives every order of events, and no rule of it can be left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.shared.bus.protocol.model import Rules, search


def test_the_final_protocol_holds_in_every_order_of_events() -> None:
    result = search(Rules(max_records=5, accidents=2))
    assert result.problem == ""
    assert result.complete > 50_000
    assert result.states > result.complete


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (Rules(reader_checks=False), "input"),
        (Rules(chain_by_id=False, checks_ack=False), "input|answered"),
        (Rules(checks_ack=False), "answered"),
        (Rules(skips_below_vector=False), "input"),
        (Rules(checks_gap=False), "input"),
        (Rules(answers_late=False), "answered"),
    ],
    ids=[
        "no reader rule",
        "seq only, ack trusted",
        "ack trusted",
        "inputs not skipped",
        "gap not seen",
        "answered when sent",
    ],
)
def test_a_protocol_without_one_of_its_rules_has_a_violation(rules: Rules, problem: str) -> None:
    result = search(rules)
    assert any(word in result.problem for word in problem.split("|"))


def test_sequence_numbers_alone_suffice_only_while_every_ack_is_checked() -> None:
    assert search(replace(Rules(), chain_by_id=False)).problem == ""


def test_three_writers_are_no_different_from_two() -> None:
    result = search(Rules(writers=3))
    assert (result.problem, result.complete > 5_000) == ("", True)


def test_the_chain_alone_suffices_and_numbers_are_for_people() -> None:
    assert search(Rules(numbers=False)).problem == ""
