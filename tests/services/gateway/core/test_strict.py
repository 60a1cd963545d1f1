from __future__ import annotations

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.core.strict import parse_body
from shared.contracts.pools import ConfigurePool


def test_a_pool_request_has_the_defaults_of_the_settings_that_it_does_not_name() -> None:
    """A request states the whole pool, also one that exists: the rest returns to the defaults."""
    command = parse_body(ConfigurePool, {"pool": "main", "rank_ms": 77})
    assert command.model_dump() == ConfigurePool(pool="main").model_dump() | {"rank_ms": 77}


def test_a_setting_that_is_not_declared_is_an_error() -> None:
    with pytest.raises(InvalidBody, match="^colour: unknown field; there are .* and others$"):
        parse_body(ConfigurePool, {"pool": "main", "colour": "red"})


def test_an_unknown_field_is_answered_with_those_like_it() -> None:
    rule = "^rank_mss: unknown field; there are rank_ms.* and others$"
    with pytest.raises(InvalidBody, match=rule):
        parse_body(ConfigurePool, {"pool": "main", "rank_mss": 5})
