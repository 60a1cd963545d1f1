"""Pools of an earlier release write what it can read, until the upgrade is finished."""

from __future__ import annotations

from typing import Any

from services.access.core.decide import Access
from services.access.core.state import AccessState
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.pools import (
    LEGACY_DEFAULTS,
    RELEASE,
    ConfigurePool,
    PoolConfigured,
    PoolDeleted,
)
from shared.contracts.releases import FinishUpgrade, settings_above
from tests.harness.decider import an_input, given, run

ACCESS = Access()
OLD = PoolConfigured(pool="old", partition=0)
_ids = iter(range(1000))


def decided(state: AccessState, command: ConfigurePool | FinishUpgrade) -> list[Event]:
    return run(ACCESS, state, [an_input(command, "access.commands", id=f"c{next(_ids)}")])


def configured(state: AccessState, pool: str, **settings: Any) -> PoolConfigured:
    events = decided(state, ConfigurePool(pool=pool, **settings))
    (event,) = (event for event in events if isinstance(event, PoolConfigured))
    return event


def held(pool: PoolConfigured) -> dict[str, Any]:
    return {name: getattr(pool, name) for name in settings_above(0)}


BEFORE = {name: LEGACY_DEFAULTS[name] for name in settings_above(0)}


def test_the_first_pool_of_an_installation_has_all_of_this_release() -> None:
    pool = configured(given(ACCESS), "first")
    assert pool.release == RELEASE and pool.rank_changes and pool.programs_once


def test_a_change_of_an_old_pool_and_a_new_pool_beside_it_hold_what_is_new() -> None:
    state = given(ACCESS, OLD)
    changed = configured(state, "old", rank_ms=900)
    assert (changed.rank_ms, changed.release, held(changed)) == (900, 0, BEFORE)
    new = configured(state, "new")
    assert (new.release, held(new)) == (0, BEFORE)


def test_a_scheduler_of_a_pool_is_refused_until_the_upgrade_is_finished() -> None:
    early = decided(given(ACCESS, OLD), ConfigurePool(pool="new", scheduler="gavel"))
    (refused,) = early
    assert isinstance(refused, CommandRefused) and refused.reason == "upgrade_not_finished"
    assert refused.detail.startswith("scheduler: 'gavel': is possible after")
    assert configured(given(ACCESS), "first", scheduler="gavel").scheduler == "gavel"


def test_a_value_that_was_not_there_before_is_refused_with_the_rule() -> None:
    events = decided(given(ACCESS, OLD), ConfigurePool(pool="old", mitigation="automatic"))
    (refused,) = events
    assert isinstance(refused, CommandRefused) and refused.reason == "upgrade_not_finished"
    assert refused.detail == (
        "mitigation: 'automatic': must be 'off' until `berth upgrade finish`: "
        "earlier releases lack it"
    )


def test_finish_turns_everything_on_in_all_pools_once() -> None:
    state = given(ACCESS, OLD, OLD.model_copy(update={"pool": "other", "partition": 1}))
    events = decided(state, FinishUpgrade())
    pools = [event for event in events if isinstance(event, PoolConfigured)]
    assert [pool.pool for pool in pools] == ["old", "other"]
    assert all(pool.release == RELEASE and pool.rank_changes for pool in pools)
    (repeated,) = decided(state, FinishUpgrade())
    assert isinstance(repeated, CommandAccepted) and repeated.duplicate
    assert configured(state, "old", mitigation="automatic").mitigation == "automatic"


def test_a_pool_that_is_made_again_after_the_last_was_deleted_waits_for_finish() -> None:
    """The pools were deleted under an earlier release, which could take over again."""
    state = given(ACCESS, OLD, PoolDeleted(pool="old", partition=0))
    assert not state.view.is_finished
    again = configured(state, "old")
    assert (again.release, held(again)) == (0, BEFORE)
    decided(state, FinishUpgrade())
    assert state.view.is_finished and configured(state, "new").release == RELEASE
