"""Settings that came with a release are held until its upgrade is finished."""

from __future__ import annotations

from shared.contracts.pools import (
    LEGACY_DEFAULTS,
    RELEASE,
    PoolConfigured,
    PoolSettings,
    default_of,
)
from shared.contracts.releases import RELEASE_SETTINGS, finished, held_settings, settings_above

OLD = PoolConfigured(pool="old", partition=0)
NEW = OLD.model_copy(update={"pool": "new", "release": RELEASE})


def test_each_held_setting_has_a_value_of_before() -> None:
    assert set(settings_above(0)) <= LEGACY_DEFAULTS.keys() & PoolSettings.model_fields.keys()
    assert max(RELEASE_SETTINGS) == RELEASE and settings_above(RELEASE) == ()


def test_a_pool_keeps_what_it_has_and_a_new_one_what_was_before() -> None:
    chosen = OLD.model_copy(update={"mitigation": "automatic"})
    assert held_settings(chosen, 0)["mitigation"] == "automatic"
    assert held_settings(None, 0)["mitigation"] == LEGACY_DEFAULTS["mitigation"]
    assert held_settings(NEW, RELEASE) == {}


def test_a_finished_pool_has_the_defaults_and_what_was_chosen() -> None:
    pool = finished(OLD.model_copy(update={"mitigation": "automatic"}))
    assert (pool.mitigation, pool.release) == ("automatic", RELEASE)
    assert pool.rank_changes is default_of("rank_changes") is True
