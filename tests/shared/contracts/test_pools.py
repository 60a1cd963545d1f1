"""The settings of a pool: declared once, recorded by the event."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.pools import (
    LEGACY_DEFAULTS,
    NEVER_S,
    PREDICTED_WAIT_S,
    PoolConfigured,
    PoolSettings,
    default_of,
)

SETTINGS = sorted(PoolSettings.model_fields.keys() - {"pool"})
BOUNDS = {
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "maxItems",
    "pattern",
}
BEFORE_ANY_CHANGE: dict[str, Any] = {
    "time_scale": 1.0,
    "backends": ("virtual",),
    "lease_s": 30.0,
    "stop_after_s": 600.0,
    "heartbeat_s": 5.0,
    "request_timeout_s": 10.0,
    "reconnect_s": 10.0,
    "suspect_after_s": 30.0,
    "kill_s": 15.0,
    "clock_rate_bound": 1.25,
    "slack_s": 5.0,
    "round_ms": 100,
    "start_timeout_s": 60.0,
    "base_policy": "fair_share",
    "learned": None,
    "runtime": "history",
    "shadows": (),
    "queue_mode": "skip",
    "preemption": "class",
    "min_residency_s": 300.0,
    "preempt_margin": 0.0,
    "large_gang_share": 1.0,
    "defragment_after_s": NEVER_S,
    "reserve_after_s": None,
    "rank_ms": 1000,
    "settle_ms": 0,
    "solver": "greedy",
    "solver_ms": 500,
    "half_life_s": 604800.0,
    "spot_gpus": None,
    "publish_predictions": False,
    "rank_changes": False,
    "easy_runtime": "user",
    "guard_predictions": False,
    "use_progress": False,
    "tenant_floor": 0.0,
    "assumed_restart_s": 0.0,
}
"""The meaning of an absent setting in old ledgers: an entry is never changed."""


def test_every_setting_is_a_field_of_the_event_in_the_order_of_the_declaration() -> None:
    own = ["reason", "release"]
    assert list(PoolConfigured.model_fields) == ["partition", *PoolSettings.model_fields, *own]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_has_one_type_and_no_bounds_in_the_event(setting: str) -> None:
    declared = PoolSettings.model_json_schema()["properties"][setting]
    assert type_of(PoolConfigured.model_json_schema()["properties"][setting]) == without_bounds(
        type_of(declared)
    )


def type_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ("default", "description")}


def without_bounds(schema: Any) -> Any:
    """Return a JSON Schema without what a later version may tighten."""
    if isinstance(schema, list):
        return [without_bounds(item) for item in schema]
    if isinstance(schema, dict):
        return {key: without_bounds(value) for key, value in schema.items() if key not in BOUNDS}
    return schema


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_event_without_a_setting_has_its_legacy_or_declared_default(setting: str) -> None:
    event = PoolConfigured(partition=0, pool="main")
    assert getattr(event, setting) == LEGACY_DEFAULTS.get(setting, default_of(setting))


def test_legacy_defaults_are_those_that_differ_from_the_declaration() -> None:
    assert all(default_of(setting) != value for setting, value in LEGACY_DEFAULTS.items())


@pytest.mark.parametrize("setting", sorted(BEFORE_ANY_CHANGE))
def test_an_absent_setting_keeps_its_meaning_for_old_ledgers(setting: str) -> None:
    event = PoolConfigured.model_validate_json('{"partition": 0, "pool": "main"}')
    assert getattr(event, setting) == BEFORE_ANY_CHANGE[setting], (
        f"add the old default of {setting} to LEGACY_DEFAULTS"
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_that_may_be_null_is_null_by_default(setting: str) -> None:
    """`berth validate` leaves nulls out of its request, which states all settings."""
    schema = PoolSettings.model_json_schema()["properties"][setting]
    may_be_null = {"type": "null"} in schema.get("anyOf", [])
    assert may_be_null == (default_of(setting) is None)


@pytest.mark.parametrize(
    ("settings", "wait_s"),
    [
        ({}, None),
        ({"queue_mode": "easy"}, PREDICTED_WAIT_S),
        ({"queue_mode": "easy", "reserve_after_s": 60.0}, 60.0),
        ({"queue_mode": "easy", "guard_predictions": False}, None),
        ({"queue_mode": "easy", "easy_runtime": "user"}, None),
        ({"reserve_after_s": 60.0}, 60.0),
    ],
)
def test_predictions_make_no_job_wait_for_ever(
    settings: dict[str, Any], wait_s: float | None
) -> None:
    plain = {"guard_predictions": True, "easy_runtime": "history"}
    event = PoolConfigured.model_validate({"partition": 0, "pool": "main"} | plain | settings)
    assert event.reserve_wait_s == wait_s


def test_an_unknown_setting_has_no_default() -> None:
    with pytest.raises(KeyError):
        default_of("no_such_setting")
