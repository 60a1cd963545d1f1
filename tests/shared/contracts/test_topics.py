"""Topics, their writers and their readers agree."""

from __future__ import annotations

import pytest

from shared.contracts import codec
from shared.contracts.base import EVENTS
from shared.contracts.topics import (
    CONSUMED_EVENTS,
    CUSTODIAN,
    DAY_MS,
    INPUTS,
    LEDGERS,
    LOSSY_INPUTS,
    MARKS,
    READS,
    SUBMITS,
    TOPICS,
    WRITER,
    submissions,
    tenant_answers,
    tenant_events,
    tenant_requests,
)


def test_every_topic_has_one_writer() -> None:
    assert WRITER.keys() == TOPICS.keys()


def test_every_input_is_a_ledger_or_ledgered() -> None:
    for service, topics in INPUTS.items():
        assert service in LEDGERS
        assert {TOPICS[topic].kind for topic in topics} <= {"ledger", "ledgered"}


def test_what_services_read_beside_their_inputs_exists() -> None:
    assert {topic for topics in READS.values() for topic in topics} <= TOPICS.keys()


@pytest.mark.parametrize("service", LEDGERS)
def test_a_consumed_event_is_in_a_ledger_that_the_service_reads(service: str) -> None:
    assert codec.MODULES
    ledgers = {*INPUTS[service], "access"}
    for type_ in CONSUMED_EVENTS[service]:
        assert ledgers & set(EVENTS[type_].LEDGERS), type_


def test_the_service_that_rejects_undecodable_records_reads_their_topic() -> None:
    assert all(topic in INPUTS[service] for topic, service in CUSTODIAN.items())


def test_ledgers_and_their_inputs_are_kept_for_ever_and_synced() -> None:
    for spec in TOPICS.values():
        lasting = spec.kind in ("ledger", "ledgered")
        assert (spec.retention_ms == -1) == (lasting and not spec.holds_prompts)
        assert spec.flush == (lasting or spec.name == "heartbeats")


def test_a_service_marks_only_topics_of_others_that_it_reads() -> None:
    for service, topics in MARKS.items():
        assert all(WRITER[topic] != service and topic in READS[service] for topic in topics)


def test_a_service_beside_the_gateway_submits_to_topics_of_commands_alone() -> None:
    for service, topics in SUBMITS.items():
        assert service in LEDGERS and all(WRITER[topic] == "gateway" for topic in topics)


def test_topics_of_prompts_are_kept_for_a_day() -> None:
    prompts = (TOPICS["llm.requests"], tenant_requests("red"), tenant_answers("red"))
    assert all(spec.holds_prompts and spec.retention_ms == DAY_MS for spec in prompts)
    assert {"llm.requests"} == LOSSY_INPUTS


def test_a_tenant_has_a_topic_to_write_and_one_to_read() -> None:
    assert submissions("red").name == "submissions.red"
    assert (submissions("red").kind, submissions("red").flush) == ("ledgered", True)
    assert tenant_events("red").name == "events.red"
    assert (tenant_events("red").kind, tenant_events("red").retention_ms) == ("public", 30 * DAY_MS)
