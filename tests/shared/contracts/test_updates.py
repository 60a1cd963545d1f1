"""Updates have every declared setting, and arrive as they were sent."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.codec import decode_command, encode
from shared.contracts.updates import Update, UpdateEndpoint, UpdatePool, UpdateQuota, UpdateTenant

UPDATES: list[type[Update]] = [UpdatePool, UpdateEndpoint, UpdateTenant, UpdateQuota]


@pytest.mark.parametrize("update", UPDATES)
def test_every_declared_setting_can_be_changed_and_is_explained(update: type[Update]) -> None:
    declared = update.SETTINGS.model_fields
    assert set(update.model_fields) - update.ABOUT == set(declared) - update.ABOUT
    for name, field in declared.items():
        assert update.model_fields[name].description and field.description, name


def test_what_is_absent_and_what_is_null_arrive_as_such() -> None:
    sent = UpdatePool.model_validate(
        {"pool": "gpu", "learned": None, "rank_ms": None, "slack_s": 2}
    )
    read = decode_command(sent.TYPE, encode(sent))
    assert isinstance(read, UpdatePool)
    assert read.changes() == {"learned": None, "rank_ms": 1000, "slack_s": 2.0}


@pytest.mark.parametrize(
    ("update", "body"),
    [
        (UpdatePool, {"pool": "a", "rank_ms": -1}),
        (UpdatePool, {"pool": "a", "learned": "X Y"}),
        (UpdateEndpoint, {"endpoint": "a", "queue_limit": 0}),
        (UpdateTenant, {"tenant": "a", "default_pool": None}),
        (UpdateQuota, {"tenant": "a", "guaranteed_gpus": None}),
    ],
)
def test_the_bounds_of_the_declaration_hold(update: type[Update], body: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        update.model_validate(body)
