"""Fields of a message become a type and a reader with the same bounds."""

from __future__ import annotations

import pytest

from shared.contracts.agent_dataclasses import (
    Schema,
    annotation,
    dataclass,
    kinds,
    messages,
    reader,
    render,
)


@pytest.mark.parametrize(
    ("rule", "type_", "call"),
    [
        ({"type": "boolean"}, "bool", "read.boolean()"),
        (
            {"type": "integer", "minimum": 0, "exclusiveMaximum": 9},
            "int",
            "read.integer(minimum=0, maximum=8)",
        ),
        ({"type": "number", "exclusiveMinimum": 0}, "float", "read.number(above=0)"),
        ({"type": "string", "maxLength": 9}, "str", "read.text(longest=9)"),
        ({"const": "a"}, 'Literal["a"]', 'read.choice("a")'),
        ({"enum": ["a", "b"]}, 'Literal["a", "b"]', 'read.choice("a", "b")'),
        (
            {"type": "array", "items": {"$ref": "#/$defs/Gpu"}, "maxItems": 8},
            "tuple[Gpu, ...]",
            "read.items(read.message(Gpu), most=8)",
        ),
        (
            {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "bool | None",
            "read.optional(read.boolean())",
        ),
    ],
)
def test_a_field_has_a_type_and_a_reader(rule: Schema, type_: str, call: str) -> None:
    assert (annotation(rule), reader(rule)) == (type_, call)


def test_a_field_without_a_default_is_required() -> None:
    schema = {
        "description": "A lease.",
        "required": ["node"],
        "properties": {"node": {"type": "boolean"}, "left": {"type": "boolean", "default": False}},
    }
    lines = list(dataclass("Lease", schema))
    assert "    node: bool" in lines
    assert "    left: bool = False" in lines


def test_a_constant_distinguishes_the_messages_of_a_kind() -> None:
    classes = messages()
    tags = [schema["properties"]["kind"]["const"] for schema in kinds(classes).values()]
    assert tags and len(set(tags)) == len(tags) < len(classes)


def test_the_module_has_a_class_per_message() -> None:
    source = render()
    compile(source, "messages.py", "exec")
    assert [name for name in messages() if f"\nclass {name}(read.Message):\n" not in source] == []
