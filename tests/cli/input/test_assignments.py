"""Settings are read by the fields of their contract, and checked by its rules."""

from __future__ import annotations

import pytest

from cli.errors import BadInput
from cli.input.assignments import merge_settings, parse_assignments
from shared.contracts.endpoints import ConfigureEndpoint, EndpointSettings

HIDDEN = frozenset({"endpoint"})


def test_values_are_json_or_words_and_lists_may_have_commas() -> None:
    words = ["queue_limit=9", "aliases=a/B,c", "discipline=vtc", "tokenizer=null"]
    expected = {"queue_limit": 9, "aliases": ["a/B", "c"], "discipline": "vtc", "tokenizer": None}
    assert parse_assignments(words, EndpointSettings, HIDDEN) == expected


def test_an_unknown_setting_lists_those_that_exist() -> None:
    with pytest.raises(BadInput, match="unknown setting: endpoint; one of adapters, aliases, "):
        parse_assignments(["endpoint=x"], EndpointSettings, HIDDEN)


def test_changes_keep_what_was_set_before() -> None:
    before = {"endpoint": "m", "queue_limit": 9, "tokenizer": "t", "partition": 3}
    body = merge_settings(ConfigureEndpoint, before, {"slack": 2.0, "tokenizer": None})
    assert body == {"endpoint": "m", "queue_limit": 9, "slack": 2.0}
    with pytest.raises(BadInput, match="^queue_limit: 0; greater than or equal to 1 is allowed$"):
        merge_settings(ConfigureEndpoint, before, {"queue_limit": 0})
