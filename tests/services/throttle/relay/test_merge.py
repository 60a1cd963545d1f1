"""Parts merge by their kind, whatever their names."""

from __future__ import annotations

from typing import Any

import pytest

from services.throttle.relay.merge import Fields, merge, plain


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([{"a": "x"}, {"a": "y"}, {"a": None}, {"a": ""}], {"a": "xy"}),
        ([{"a": None}, {"a": "x"}], {"a": "x"}),
        ([{"a": None}], {"a": None}),
        ([{"a": [1]}, {"a": [2, 3]}, {"a": []}], {"a": [1, 2, 3]}),
        ([{"a": []}, {"a": [1]}], {"a": [1]}),
        ([{"a": {"b": "x", "c": 1}}, {"a": {"b": "y", "c": 2}}], {"a": {"b": "xy", "c": 2}}),
        ([{"id": "x"}, {"id": "x"}, {"id": ""}], {"id": "x"}),
        ([{"name": "get_"}, {"name": "time"}], {"name": "get_time"}),
        ([{"name": "get"}, {"name": "get"}], {"name": "get"}),
        ([{"a": 1}, {"a": True}, {"a": {"b": 1}}, {"a": "x"}], {"a": "x"}),
        (
            [
                {"a": [{"index": 1, "t": "x"}]},
                {"a": [{"index": 0, "t": "a"}, {"index": 1, "t": "y"}]},
                {"a": []},
            ],
            {"a": [{"index": 0, "t": "a"}, {"index": 1, "t": "xy"}]},
        ),
        ([{"a": [{"t": "x"}]}, {"a": [{"t": "y"}]}], {"a": [{"t": "x"}, {"t": "y"}]}),
        (
            [{"a": [{"index": "0"}]}, {"a": [{"index": True}]}],
            {"a": [{"index": "0"}, {"index": True}]},
        ),
    ],
)
def test_parts_of_an_answer_merge(parts: list[Fields], whole: Fields) -> None:
    merged: Fields = {}
    for part in parts:
        merge(merged, part, joins_texts=True)
    assert plain(merged) == whole


def test_a_text_that_is_not_of_the_answer_is_replaced() -> None:
    merged: Fields = {}
    parts: list[Any] = [{"reason": None}, {"reason": "stop"}, {"reason": None, "tokens": [1]}]
    for part in [*parts, {"tokens": [2]}]:
        merge(merged, part, joins_texts=False)
    assert plain(merged) == {"reason": "stop", "tokens": [1, 2]}
