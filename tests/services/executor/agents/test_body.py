"""Text that no read model can store."""

from __future__ import annotations

import json

import pytest

from services.executor.agents.body import replace_nul


def test_nul_becomes_the_replacement_character_wherever_it_stands() -> None:
    body = json.dumps({"rack": "a\x00b", "labels": {"k\x00": "v"}, "output": ["\x00"], "n": 1})
    expected = {"rack": "a\ufffdb", "labels": {"k\ufffd": "v"}, "output": ["\ufffd"], "n": 1}
    assert json.loads(replace_nul(body.encode())) == expected


@pytest.mark.parametrize(
    "body", [b"{}", b'{"a": "\\\\u0000"}', b"\\u0000", b"[" * 200_000 + b"\\u0000"]
)
def test_what_holds_no_nul_or_is_no_json_stays_as_it_is(body: bytes) -> None:
    replaced = replace_nul(body)
    assert replaced == body or json.loads(replaced) == json.loads(body)
