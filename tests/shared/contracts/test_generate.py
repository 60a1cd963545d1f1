"""Schemas, AsyncAPI and the table of events follow from the models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from shared.contracts.base import COMMANDS, EVENTS
from shared.contracts.generate import (
    asyncapi,
    command_topic,
    envelope,
    messages_of,
    operations,
    schema,
    summary,
    wire_models,
)
from shared.contracts.nodes import NodeCordoned
from shared.contracts.topics import MARKS, SUBMITS, TOPICS, WRITER


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Pet(BaseModel):
    """A pet.

    More about it.
    """

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


def test_every_event_command_and_report_is_a_wire_model() -> None:
    assert EVENTS.keys() | COMMANDS.keys() <= wire_models().keys()
    assert {"executor.reported.v1", "nodes.alive.v2", "nodes.read.v1"} <= wire_models().keys()


def test_the_discriminator_of_a_union_is_required() -> None:
    definitions = schema(Pet)["$defs"]
    assert definitions["Cat"]["required"] == definitions["Dog"]["required"] == ["kind"]


def test_the_summary_is_the_first_line_of_the_docstring() -> None:
    assert summary(Pet) == "A pet."


def test_a_command_is_sent_to_the_topic_of_its_owner() -> None:
    assert command_topic("access") == "access.commands"
    assert command_topic("throttle") == "llm.requests"
    assert command_topic("admission") == command_topic("placement") == "commands"


def test_messages_are_listed_by_topic() -> None:
    assert messages_of("heartbeats") == ["nodes.alive.v2", "nodes.read.v1"]
    assert "node.cordoned.v1" in messages_of("placement")
    assert "node.cordoned.v1" in messages_of("events")
    assert "node.health-noted.v1" not in messages_of("events")
    assert "job.cancel.v1" in messages_of("commands")


def test_an_envelope_names_its_type_and_schema() -> None:
    properties = envelope(NodeCordoned.TYPE)["properties"]
    assert properties["type"] == {"const": "node.cordoned.v1"}
    assert properties["data"] == {"$ref": "./schemas/node.cordoned.v1.json"}


def test_every_topic_has_a_channel_and_a_writer() -> None:
    assert asyncapi()["channels"].keys() == TOPICS.keys()
    senders = {name for name, entry in operations().items() if entry["action"] == "send"}
    writers = {f"{service}.writes.{topic}" for topic, service in WRITER.items()}
    others = {
        f"{service}.writes.{topic}"
        for also in (MARKS, SUBMITS)
        for service, topics in also.items()
        for topic in topics
    }
    assert senders == writers | others
