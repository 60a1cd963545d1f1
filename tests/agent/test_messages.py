"""The agent's messages carry exactly what the contract says."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth_agent import messages as ours
from berth_agent.reading import MalformedMessage, Message
from shared.contracts import agents as contract
from shared.contracts.agent_dataclasses import messages
from shared.contracts.base import Model
from tests.agent.message_examples import messages as examples

SCHEMAS = messages()
EXAMPLES = {name: examples(schema) for name, schema in SCHEMAS.items()}
JUNK = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.none()))
FEW = settings(max_examples=30)
"""There are many messages, which have the readers of their fields in common."""


def class_of(name: str) -> type[Message]:
    return getattr(ours, name)  # type: ignore[no-any-return]


def model_of(name: str) -> type[Model]:
    return getattr(contract, name)  # type: ignore[no-any-return]


def test_each_message_of_the_contract_is_there() -> None:
    classes = [c for c in vars(ours).values() if isinstance(c, type) and issubclass(c, Message)]
    assert [c.__name__ for c in classes] == list(SCHEMAS)
    for cls in classes:
        fields = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        assert fields == list(model_of(cls.__name__).model_fields) == list(cls.READERS)


@pytest.mark.parametrize("name", SCHEMAS)
@FEW
@given(data=st.data())
def test_a_valid_message_is_read_and_written_unchanged(name: str, data: st.DataObject) -> None:
    value = data.draw(EXAMPLES[name])
    expected = model_of(name).model_validate(value)
    message = class_of(name).from_json(value)
    assert model_of(name).model_validate(message.to_json()) == expected
    assert class_of(name).from_json(message.to_json()) == message


@pytest.mark.parametrize("name", SCHEMAS)
@FEW
@given(data=st.data())
def test_a_wrong_field_is_named(name: str, data: st.DataObject) -> None:
    """Whatever replaces a value: both readers accept it, or this one names the field."""
    value = data.draw(EXAMPLES[name])
    field = data.draw(st.sampled_from(list(class_of(name).READERS)))
    broken: dict[str, Any] = {**value, field: data.draw(JUNK)}
    try:
        message = class_of(name).from_json(broken)
    except MalformedMessage as error:
        assert str(error).startswith(f"{name}.{field}")
        assert len(str(error)) < 1000
    else:
        model_of(name).model_validate(message.to_json())


def test_unknown_fields_are_ignored() -> None:
    assert ours.Acknowledged.from_json({"n": 3, "colour": "red"}) == ours.Acknowledged(n=3)


@pytest.mark.parametrize(
    ("cls", "value", "complaint"),
    [
        (ours.Acknowledged, [], "Acknowledged: wrong value: list []; an object is allowed"),
        (ours.Acknowledged, {}, "Acknowledged.n: missing; it is required"),
        (
            ours.Acknowledged,
            {"n": True},
            "Acknowledged.n: wrong value: bool True; an integer is allowed",
        ),
        (
            ours.Orders,
            {"orders": [{}], "through": {}},
            "Orders.orders[0].incarnation: missing; it is required",
        ),
        (
            ours.ReportsRequest,
            {
                "session_id": "0" * 32,
                "incarnation": {"generation": 1, "uuid": "0" * 32},
                "first_n": 1,
                "reports": [{"kind": "party"}],
            },
            "ReportsRequest.reports[0].kind: wrong value: str 'party'; one of registration",
        ),
    ],
)
def test_the_error_says_what_is_wrong(cls: type[Message], value: object, complaint: str) -> None:
    with pytest.raises(MalformedMessage) as error:
        cls.from_json(value)
    assert str(error.value).startswith(complaint)


def test_a_pattern_holds_for_the_whole_string() -> None:
    with pytest.raises(MalformedMessage, match="Incarnation.uuid"):
        ours.Incarnation.from_json({"generation": 1, "uuid": "0" * 32 + "\n"})


def test_a_number_that_is_not_finite_is_refused() -> None:
    terms = {"terms_id": "a", "heartbeat_s": 1, "request_timeout_s": 1, "reconnect_s": 1}
    for value in (float("nan"), float("inf"), -float("inf"), 10**400, 10**9999):
        with pytest.raises(MalformedMessage, match="Terms.stop_after_s"):
            ours.Terms.from_json({**terms, "stop_after_s": value})
