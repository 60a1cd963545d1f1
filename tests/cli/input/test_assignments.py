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


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (
            'budgets=[{"holder": "x", "unit": "tokens", "limit": 5}]',
            "budgets.0.holder: 'x'; 'tenant', 'user', 'application' or 'model' is allowed",
        ),
        (
            'budgets=[{"holder": "tenant", "unit": "tokens"}]',
            "budgets.0.limit: missing; a value is required",
        ),
        ("budgets=tenant", "budgets: 'tenant'; a JSON object with its fields is allowed"),
        ('budgets={"holder": 1}', "budgets: {'holder': 1}; a JSON list is allowed"),
        ("budgets=[{'holder': 1}]", "budgets: [{'holder': 1}]; valid JSON is allowed: Expecting"),
        (
            'upstreams=[{"name": "a", "url": "ftp://x"}]',
            "upstreams.0.url: 'ftp://x'; a string that matches pattern '^https?://",
        ),
    ],
)
def test_a_part_of_a_setting_is_named_with_its_value_and_rule(word: str, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        changes = parse_assignments([word], EndpointSettings, HIDDEN)
        merge_settings(ConfigureEndpoint, {"endpoint": "m"}, changes)
    assert str(caught.value).startswith(text)


def test_changes_keep_what_was_set_before() -> None:
    before = {"endpoint": "m", "queue_limit": 9, "tokenizer": "t", "partition": 3}
    body = merge_settings(ConfigureEndpoint, before, {"slack": 2.0, "tokenizer": None})
    assert body == {"endpoint": "m", "queue_limit": 9, "slack": 2.0}
    with pytest.raises(BadInput, match="^queue_limit: 0; greater than or equal to 1 is allowed$"):
        merge_settings(ConfigureEndpoint, before, {"queue_limit": 0})
