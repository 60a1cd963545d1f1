"""Every contract meets values of its own JSON Schema: fair, nearly fair and hostile ones."""

from __future__ import annotations

import json
import os
from functools import cache

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from shared.contracts.base import COMMANDS, EVENTS, Model, UnknownType
from shared.contracts.codec import decode_command, decode_event, encode
from shared.contracts.generate import Json, command_topic, schema, wire_models
from shared.contracts.topics import CUSTODIAN
from shared.contracts.upcast import UPCASTERS, UpcastError, upcast
from shared.ledger.decider import Undecodable
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from tests.fuzz.corpus import HOSTILE, envelope
from tests.fuzz.schemas import HOSTILE_JSON, dumped, hostile, valid
from tests.fuzz.tally import tally

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("BERTH_FUZZ_CASES", "12"))
"""Cases per contract and kind; `make fuzz` runs more."""
WIRE = wire_models()
each_contract = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.parts) if name in EVENTS else name
        for name in sorted(WIRE)
    ],
)
"""Events are written by Berth's own services: `make test` begins with what others send."""
quickly = settings(
    max_examples=CASES,
    deadline=None,
    derandomize="BERTH_FUZZ_CASES" not in os.environ,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


@cache
def schema_of(name: str) -> Json:
    return schema(WIRE[name])


def decode(name: str, data: bytes) -> Model | BaseModel:
    if name in EVENTS:
        return decode_event(name, data)
    if name in COMMANDS:
        return decode_command(name, data)
    return WIRE[name].model_validate_json(data)


@each_contract
def test_a_value_that_obeys_the_schema_is_read_and_written_back_unchanged(name: str) -> None:
    """A value that is refused all the same breaks a rule between fields: no schema has those."""
    judge = jsonschema_rs.validator_for(schema_of(name))

    @quickly
    @given(valid(schema_of(name), schema_of(name)))
    def check(value: object) -> None:
        tally("values that obey their schema")
        try:
            message = decode(name, dumped(value))
        except ValidationError as error:
            assert {fault["type"] for fault in error.errors()} <= {"value_error"}, error
            return
        wire = encode(message)  # type: ignore[arg-type]
        assert decode(name, wire) == message
        judge.validate(json.loads(wire))

    check()


@each_contract
def test_a_hostile_value_is_read_or_refused_with_a_reason(name: str) -> None:
    @quickly
    @given(hostile(schema_of(name), schema_of(name)))
    def check(data: bytes) -> None:
        tally("hostile values of a schema")
        try:
            message = decode(name, data)
        except ValidationError as error:
            assert error.errors(include_input=False)[0]["msg"]
            return
        wire = encode(message)  # type: ignore[arg-type]
        assert decode(name, wire) == message

    check()


def custodian_of(name: str) -> tuple[InputDecoder, str]:
    """Return the decoder that rejects bad records of the command's topic, and the topic."""
    topic = command_topic(COMMANDS[name].OWNER)
    return InputDecoder(CUSTODIAN[topic]), topic


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_is_one_input_with_what_it_means_or_the_reason_why_it_is_refused(
    name: str,
) -> None:
    decoder, topic = custodian_of(name)
    rule = schema_of(name)
    read = 0

    @quickly
    @given(valid(rule, rule).map(dumped) | hostile(rule, rule))
    def check(data: bytes) -> None:
        nonlocal read
        tally("valid and hostile commands")
        [item] = decoder.decode_plain(TP(topic, 0), 3, envelope(name, data))
        if not isinstance(item.message, Undecodable):
            assert item.message == decode_command(name, data)
            read += 1
            return
        assert item.message.reason
        encode(item.message.rejection())
        if "NUL character" not in item.message.reason:
            with pytest.raises(ValidationError):
                decode_command(name, data)

    check()
    assert read


@pytest.mark.parametrize("name", sorted(name for name in COMMANDS if COMMANDS[name].model_fields))
def test_hostile_json_in_place_of_a_command_has_a_reason(name: str) -> None:
    decoder, topic = custodian_of(name)
    for case, data in HOSTILE.items():
        for value in (data, envelope(name, data)):
            for item in decoder.decode_plain(TP(topic, 0), 3, value):
                assert isinstance(item.message, Undecodable), case
                assert item.message.reason, case


@pytest.mark.parametrize("data", [b"{}", b"[]", b"1", *HOSTILE_JSON])
def test_old_data_that_are_none_are_refused_with_a_reason(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lift(old: dict[str, object]) -> dict[str, object]:
        return {"job_id": old["id"]}

    with pytest.raises(UpcastError, match="job.cancel.v0"):
        upcast("job.cancel.v0", data, {"job.cancel.v0": ("job.cancel.v1", lift)})
    monkeypatch.setitem(UPCASTERS, "job.cancel.v0", ("job.cancel.v1", lift))
    (item,) = InputDecoder("admission").decode_plain(
        TP("commands", 0), 3, envelope("job.cancel.v0", data)
    )
    assert isinstance(item.message, Undecodable)


@given(st.text())
def test_a_name_of_no_contract_is_unknown(name: str) -> None:
    with pytest.raises(UnknownType):
        decode_event(f"{name}.v0", b"{}")
