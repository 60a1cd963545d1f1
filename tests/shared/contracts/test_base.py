"""Messages are frozen, tolerant of new fields, and registered under one wire name."""

from __future__ import annotations

from typing import ClassVar

import pytest
from pydantic import BaseModel, ValidationError

from shared.contracts.base import Command, Event, Name, Text, command, event
from shared.contracts.nodes import CordonNode, NodeCordoned


class Example(BaseModel):
    name: Name = "a"
    text: Text = ""


def test_a_message_is_frozen() -> None:
    message = NodeCordoned(node_id="n1")
    with pytest.raises(ValidationError, match="frozen"):
        message.node_id = "n2"  # type: ignore[misc]


def test_unknown_fields_are_ignored() -> None:
    newer = NodeCordoned.model_validate({"node_id": "n1", "added_later": 1})
    assert newer == NodeCordoned(node_id="n1")


def test_the_subject_of_an_event_is_its_key_field() -> None:
    assert NodeCordoned(node_id="n1").subject == "n1"


@pytest.mark.parametrize("name", ["a", "a-1", "team.red_2", "0"])
def test_names_can_be_part_of_a_topic(name: str) -> None:
    assert Example(name=name).name == name


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a b", "a/b", "x" * 64])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Example(name=name)


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[2J", "\x7f", "x" * 257])
def test_text_has_no_control_characters_and_a_limit(text: str) -> None:
    with pytest.raises(ValidationError):
        Example(text=text)
    assert Example(text="two lines\nand a\ttab").text.count("\n") == 1


def test_two_events_cannot_share_a_wire_name() -> None:
    class Other(Event):
        TYPE: ClassVar[str] = NodeCordoned.TYPE

    with pytest.raises(TypeError, match=r"node\.cordoned\.v1"):
        event(Other)
    assert event(NodeCordoned) is NodeCordoned


def test_two_commands_cannot_share_a_wire_name() -> None:
    class Other(Command):
        TYPE: ClassVar[str] = CordonNode.TYPE

    with pytest.raises(TypeError, match=r"node\.cordon\.v1"):
        command(Other)
    assert command(CordonNode) is CordonNode
