"""A pool gets a lane, and a command states all its settings."""

from __future__ import annotations

from services.access.core.configuration import decide_configuration
from services.access.core.outcomes import Denial, Grant
from shared.contracts.access import TenantRegistered
from shared.contracts.pools import RELEASE, ConfigurePool, PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.settings_version import version_of


def test_a_denial_for_want_of_a_lane_names_the_limit() -> None:
    outcome = decide_configuration(AccessView(), 0, ConfigurePool(pool="main"))
    assert outcome == Denial("main", "no_lane_left", "pool: 'main': pool limit (0) reached")


def test_every_setting_of_the_command_is_recorded() -> None:
    command = ConfigurePool(
        pool="main", learned="berth", shadows=("las",), solver="greedy", spot_gpus=8, rank_ms=5
    )
    outcome = decide_configuration(AccessView(), 4, command)
    assert isinstance(outcome, Grant) and outcome.event is not None
    named = command.model_dump(exclude={"if_version"})
    assert outcome.event.model_dump(exclude={"partition", "reason", "release"}) == named


def test_a_pool_is_opened_to_registered_tenants_alone() -> None:
    view = AccessView()
    view.apply(TenantRegistered(tenant="ada", default_pool="main"))
    outcome = decide_configuration(view, 4, ConfigurePool(pool="main", tenants=("ada",)))
    assert isinstance(outcome, Grant) and isinstance(outcome.event, PoolConfigured)
    assert outcome.event.is_open_to("ada") and not outcome.event.is_open_to("bob")
    outcome = decide_configuration(view, 4, ConfigurePool(pool="main", tenants=("ada", "bbo")))
    detail = "tenants: 'bbo': no such tenant; `berth tenants add` registers one"
    assert outcome == Denial("main", "unknown_tenant", detail)


def test_of_two_changes_that_are_based_on_one_version_the_second_is_denied() -> None:
    view = AccessView()
    present = PoolConfigured(partition=2, pool="main")
    view.apply(present)
    base = version_of(present)
    first = decide_configuration(view, 4, ConfigurePool(pool="main", rank_ms=7, if_version=base))
    assert isinstance(first, Grant) and first.event is not None
    view.apply(first.event)
    changed = version_of(view.pools["main"])
    second = decide_configuration(view, 4, ConfigurePool(pool="main", round_ms=9, if_version=base))
    rule = f"pool main has version {changed}; read it again and repeat the change"
    assert second == Denial("main", "version_conflict", f"if_version: '{base}': {rule}")
    repeated = decide_configuration(view, 4, ConfigurePool(pool="main", rank_ms=7, if_version=base))
    assert repeated == Grant("main", None)
    retried = ConfigurePool(pool="main", round_ms=9, rank_ms=7, if_version=changed)
    assert isinstance(decide_configuration(view, 4, retried), Grant)


def test_a_pool_is_created_only_once_where_that_is_the_condition() -> None:
    view = AccessView()
    command = ConfigurePool(pool="main", rank_ms=7, if_version="absent")
    created = decide_configuration(view, 4, command)
    assert isinstance(created, Grant) and created.event is not None
    view.apply(PoolConfigured(partition=0, pool="main"))
    denied = decide_configuration(view, 4, command)
    assert isinstance(denied, Denial) and denied.reason == "version_conflict"


def test_settings_that_a_command_does_not_name_return_to_their_defaults() -> None:
    """A command states the whole pool: a client that changes one setting repeats the others."""
    view = AccessView()
    pool = PoolConfigured(partition=2, pool="main", release=RELEASE, round_ms=5, spot_gpus=8)
    view.apply(pool)
    outcome = decide_configuration(view, 4, ConfigurePool(pool="main", rank_ms=77))
    assert isinstance(outcome, Grant) and outcome.event is not None
    defaults = ConfigurePool(pool="main").model_dump(exclude={"if_version"})
    assert outcome.event.model_dump() == defaults | {
        "partition": 2,
        "release": RELEASE,
        "reason": "",
        "rank_ms": 77,
    }
    recorded = pool.model_copy(update={"reason": "a drill"})
    view.apply(recorded)
    same = {
        name: getattr(pool, name) for name in ConfigurePool.model_fields.keys() - {"if_version"}
    }
    assert decide_configuration(view, 4, ConfigurePool.model_validate(same)) == Grant("main", None)


def test_a_pool_of_processes_is_denied_with_what_is_allowed() -> None:
    command = ConfigurePool(pool="main", backends=("virtual", "process"))
    detail = "backends: 'process': is retired; 'agent' and 'virtual' are allowed"
    assert decide_configuration(AccessView(), 4, command) == Denial(
        "main", "backend_retired", detail
    )
