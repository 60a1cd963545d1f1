"""The generated documents agree with the code."""

from __future__ import annotations

import json

import jsonschema_rs

from shared.contracts.base import COMMANDS, EVENTS
from shared.contracts.generate import ROOT, render, wire_models
from shared.contracts.topics import CUSTODIAN, INPUTS, LEDGERS, TOPICS


def test_generated_files_are_fresh() -> None:
    stale = [path for path, text in render().items() if (ROOT / path).read_text() != text]
    assert stale == [], "run make contracts"


def test_no_schema_is_left_of_a_removed_message() -> None:
    published = {path.stem for path in (ROOT / "docs/contracts/schemas").glob("*.json")}
    assert published == set(wire_models())


def test_fixtures_satisfy_the_published_schemas() -> None:
    for name in wire_models():
        schema = json.loads((ROOT / f"docs/contracts/schemas/{name}.json").read_text())
        fixture = json.loads((ROOT / f"tests/contracts/fixtures/{name}.json").read_text())
        assert [*jsonschema_rs.validator_for(schema).iter_errors(fixture)] == [], name


def test_every_field_is_described() -> None:
    for name, model in wire_models().items():
        for field, info in model.model_fields.items():
            assert info.description or field == "kind", f"{name}.{field}"


def test_wire_names_are_hand_written_and_versioned() -> None:
    for name in wire_models():
        noun, verb, version = name.split(".")
        assert noun and verb and version[0] == "v" and version[1:].isdigit(), name


def test_every_event_has_a_subject_and_a_ledger() -> None:
    for name, cls in EVENTS.items():
        assert cls.SUBJECT in cls.model_fields, name
        assert set(cls.LEDGERS) <= set(LEDGERS), name


def test_every_command_has_one_owner_that_reads_its_topic() -> None:
    for name, cls in COMMANDS.items():
        topic = {"access": "access.commands", "throttle": "llm.requests"}.get(cls.OWNER, "commands")
        assert topic in INPUTS[cls.OWNER], name


def test_every_ledgered_topic_has_a_service_that_rejects_its_undecodable_records() -> None:
    ledgered = {name for name, spec in TOPICS.items() if spec.kind == "ledgered"}
    assert ledgered == set(CUSTODIAN)
    assert all(topic in INPUTS[service] for topic, service in CUSTODIAN.items())
