"""A tokenizer counts the texts of a prompt, not its JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from services.throttle.relay.prompt_text import prompt_text

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"prompt": "one"}, "one"),
        ({"prompt": ["one", "two"]}, "one\ntwo"),
        ({"prompt": [1, 2]}, ""),
        ({"input": "one", "instructions": "be"}, "be\none"),
        ({"messages": [{"role": "user", "content": 'say "é"'}]}, 'user\nsay "é"'),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE]}]},
            "user\na",
        ),
        (
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [CALL]}]},
            "assistant\n" + json.dumps([CALL], separators=(",", ":")),
        ),
        ({"input": [{"type": "function_call_output", "output": "42"}]}, "42"),
        ({"tools": [{"type": "function"}], "prompt": "x"}, '[{"type": "function"}]\nx'),
        ({"messages": 7}, ""),
    ],
)
def test_the_texts_of_a_prompt_are_its_lines(fields: dict[str, Any], text: str) -> None:
    raws = {name: Raw(json.dumps(value).encode()) for name, value in fields.items()}
    assert prompt_text(raws) == text


def test_a_prompt_that_is_no_utf_8_counts_all_the_same() -> None:
    assert prompt_text({"prompt": Raw(b'"\xff"')}) == '"\ufffd"'
