from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, decide_outcome
from shared.contracts.access import (
    Attempt,
    AttemptsRefused,
    CreateKey,
    KeyCreated,
    NoteAttempts,
    RegisterTenant,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured
from shared.contracts.job_commands import CancelJob
from shared.contracts.pools import RELEASE, ConfigurePool, PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.settings_version import version_of

SHA256 = "ab" * 32


def test_refused_attempts_are_noted() -> None:
    attempts = (Attempt(principal="key:k1", status=403, requests=2),)
    command = NoteAttempts(gateway="g1", attempts=attempts)
    event = AttemptsRefused(gateway="g1", attempts=attempts)
    assert decide_outcome(AccessView(), 4, command) == Grant("g1", event)


def test_a_command_that_access_does_not_support_is_denied() -> None:
    outcome = decide_outcome(AccessView(), 4, CancelJob(job_id="j1"))
    assert outcome == Denial("", "unknown_command", "command: job.cancel.v1: not supported")


def test_a_denial_for_want_of_a_lane_names_the_limit() -> None:
    outcome = decide_outcome(AccessView(), 0, ConfigurePool(pool="main"))
    assert outcome == Denial("main", "no_lane_left", "pool: 'main': pool limit (0) reached")


def test_every_setting_of_the_command_is_recorded() -> None:
    command = ConfigurePool(
        pool="main", learned="berth", shadows=("las",), solver="greedy", spot_gpus=8, rank_ms=5
    )
    outcome = decide_outcome(AccessView(), 4, command)
    assert isinstance(outcome, Grant) and outcome.event is not None
    named = command.model_dump(exclude={"if_version"})
    assert outcome.event.model_dump(exclude={"partition", "reason", "release"}) == named


def test_a_pool_is_opened_to_registered_tenants_alone() -> None:
    view = AccessView()
    view.apply(TenantRegistered(tenant="ada", default_pool="main"))
    outcome = decide_outcome(view, 4, ConfigurePool(pool="main", tenants=("ada",)))
    assert isinstance(outcome, Grant) and isinstance(outcome.event, PoolConfigured)
    assert outcome.event.is_open_to("ada") and not outcome.event.is_open_to("bob")
    outcome = decide_outcome(view, 4, ConfigurePool(pool="main", tenants=("ada", "bbo")))
    detail = "tenants: 'bbo': no such tenant; `berth tenants add` registers one"
    assert outcome == Denial("main", "unknown_tenant", detail)


def test_of_two_changes_that_are_based_on_one_version_the_second_is_denied() -> None:
    view = AccessView()
    present = PoolConfigured(partition=2, pool="main")
    view.apply(present)
    base = version_of(present)
    first = decide_outcome(view, 4, ConfigurePool(pool="main", rank_ms=7, if_version=base))
    assert isinstance(first, Grant) and first.event is not None
    view.apply(first.event)
    changed = version_of(view.pools["main"])
    second = decide_outcome(view, 4, ConfigurePool(pool="main", round_ms=9, if_version=base))
    rule = f"pool main has version {changed}; read it again and repeat the change"
    assert second == Denial("main", "version_conflict", f"if_version: '{base}': {rule}")
    repeated = decide_outcome(view, 4, ConfigurePool(pool="main", rank_ms=7, if_version=base))
    assert repeated == Grant("main", None)
    retried = ConfigurePool(pool="main", round_ms=9, rank_ms=7, if_version=changed)
    assert isinstance(decide_outcome(view, 4, retried), Grant)


def test_a_pool_is_created_only_once_where_that_is_the_condition() -> None:
    view = AccessView()
    command = ConfigurePool(pool="main", rank_ms=7, if_version="absent")
    created = decide_outcome(view, 4, command)
    assert isinstance(created, Grant) and created.event is not None
    view.apply(PoolConfigured(partition=0, pool="main"))
    denied = decide_outcome(view, 4, command)
    assert isinstance(denied, Denial) and denied.reason == "version_conflict"


def test_settings_that_a_command_does_not_name_return_to_their_defaults() -> None:
    """A command states the whole pool: a client that changes one setting repeats the others."""
    view = AccessView()
    pool = PoolConfigured(partition=2, pool="main", release=RELEASE, round_ms=5, spot_gpus=8)
    view.apply(pool)
    outcome = decide_outcome(view, 4, ConfigurePool(pool="main", rank_ms=77))
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
    assert decide_outcome(view, 4, ConfigurePool.model_validate(same)) == Grant("main", None)


def test_a_changed_endpoint_keeps_its_lane() -> None:
    view = AccessView()
    view.apply(EndpointConfigured(endpoint="chat", partition=2, batch_tokens=100))
    command = ConfigureEndpoint(endpoint="chat", batch_tokens=200)
    outcome = decide_outcome(view, 4, command)
    assert isinstance(outcome, Grant)
    assert isinstance(outcome.event, EndpointConfigured)
    assert (outcome.event.partition, outcome.event.batch_tokens) == (2, 200)


def test_a_pool_of_processes_is_denied_with_what_is_allowed() -> None:
    command = ConfigurePool(pool="main", backends=("virtual", "process"))
    detail = "backends: 'process': is retired; 'agent' and 'virtual' are allowed"
    assert decide_outcome(AccessView(), 4, command) == Denial("main", "backend_retired", detail)


def test_a_tenant_of_an_unknown_pool_is_denied_with_the_remedy() -> None:
    outcome = decide_outcome(AccessView(), 4, RegisterTenant(tenant="acme", default_pool="main"))
    detail = "default_pool: 'main': no such pool; configure it first"
    assert outcome == Denial("acme", "unknown_pool", detail)


def test_a_viewers_key_may_serve_all_tenants() -> None:
    command = CreateKey(key_id="k1", sha256=SHA256, role="viewer")
    event = KeyCreated(key_id="k1", sha256=SHA256, role="viewer")
    assert decide_outcome(AccessView(), 4, command) == Grant("k1", event)


def test_a_tenant_is_numbered_once_and_keeps_its_number() -> None:
    view = AccessView()
    view.apply(PoolConfigured(partition=0, pool="main"))
    view.apply(TenantRegistered(tenant="old", default_pool="main"))

    def register(tenant: str, weight: float = 1.0) -> int | None:
        command = RegisterTenant(tenant=tenant, default_pool="main", weight=weight)
        outcome = decide_outcome(view, 4, command)
        assert isinstance(outcome, Grant)
        if outcome.event is None:
            return None
        assert isinstance(outcome.event, TenantRegistered)
        view.apply(outcome.event)
        return outcome.event.number

    assert register("old") is None
    assert [register("ada"), register("bob"), register("ada", 2.0)] == [1, 2, 1]
    view.apply(TenantRetired(tenant="ada"))
    assert [register("carl"), register("ada", 2.0), register("old", 2.0)] == [3, 1, 0]
