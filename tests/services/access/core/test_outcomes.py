from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, decide_outcome
from shared.contracts.access import (
    Attempt,
    AttemptsRefused,
    ConfigureEndpoint,
    ConfigurePool,
    CreateKey,
    EndpointConfigured,
    KeyCreated,
    NoteAttempts,
    PoolConfigured,
    RegisterTenant,
)
from shared.contracts.jobs import CancelJob
from shared.contracts.registry import AccessView

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
    assert outcome.event.model_dump(exclude={"partition"}) == command.model_dump()


def test_settings_that_a_command_does_not_name_return_to_their_defaults() -> None:
    """A command states the whole pool: a client that changes one setting repeats the others."""
    view = AccessView()
    view.apply(PoolConfigured(partition=2, pool="main", solver="greedy", round_ms=5, spot_gpus=8))
    outcome = decide_outcome(view, 4, ConfigurePool(pool="main", rank_ms=77))
    assert isinstance(outcome, Grant) and outcome.event is not None
    defaults = ConfigurePool(pool="main").model_dump()
    assert outcome.event.model_dump() == defaults | {"partition": 2, "rank_ms": 77}


def test_a_changed_endpoint_keeps_its_lane() -> None:
    view = AccessView()
    view.apply(EndpointConfigured(endpoint="chat", partition=2, tokens_per_s=50, batch_tokens=100))
    command = ConfigureEndpoint(endpoint="chat", tokens_per_s=60, batch_tokens=100)
    outcome = decide_outcome(view, 4, command)
    assert isinstance(outcome, Grant)
    assert isinstance(outcome.event, EndpointConfigured)
    assert (outcome.event.partition, outcome.event.tokens_per_s) == (2, 60)


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
