from __future__ import annotations

from typing import Any

import pytest

from services.access.core.decide import Access
from shared.contracts.access import (
    CreateKey,
    KeyCreated,
    KeyRevoked,
    RegisterTenant,
    RetireTenant,
    RevokeKey,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.base import Command, Event
from shared.contracts.bounds import TenantBounds
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured
from shared.contracts.job_commands import CancelJob
from shared.contracts.keys import hash_secret
from shared.contracts.pools import RELEASE, ConfigurePool, PoolConfigured
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Undecodable
from tests.harness.decider import an_input, fold, given, run, run_facts

TOPIC = "access.commands"
ACCESS = Access(lanes=3)
HASH = hash_secret("s3")


def configured(**fields: Any) -> PoolConfigured:
    """Return the event of a command with these fields; old events have other defaults."""
    return PoolConfigured(
        solver="cpsat",
        large_gang_share=0.25,
        defragment_after_s=1800.0,
        preemption_protection="progress",
        publish_predictions=True,
        guard_predictions=True,
        use_progress=True,
        rank_changes=True,
        programs_once=True,
        mitigation="approve",
        assumed_restart_s=60.0,
        easy_runtime="history",
        release=RELEASE,
        **fields,
    )


POOL = configured(partition=0, pool="main")
TENANT = TenantRegistered(tenant="acme", default_pool="main", number=0, bounds=TenantBounds())
KEY = KeyCreated(key_id="k1", sha256=HASH, role="submitter", tenant="acme")
ENDPOINT = EndpointConfigured(endpoint="chat", partition=0, batch_tokens=4096)


def when(command: Command, *history: Event) -> list[Event]:
    return run(ACCESS, given(ACCESS, *history), [an_input(command, TOPIC, id="c1", tenant="ops")])


def acceptance(command: type[Command], of: str, duplicate: bool = False) -> CommandAccepted:
    return CommandAccepted(
        command_id="c1", command_type=command.TYPE, of=of, tenant="ops", duplicate=duplicate
    )


def refusal(command: Command, *history: Event) -> str:
    (answer,) = when(command, *history)
    assert isinstance(answer, CommandRefused)
    assert (answer.command_id, answer.command_type) == ("c1", command.TYPE)
    assert answer.detail
    return answer.reason


def pools(*lanes: int) -> list[Event]:
    return [configured(partition=lane, pool=f"p{lane}") for lane in lanes]


def test_the_first_pool_gets_lane_0() -> None:
    assert when(ConfigurePool(pool="main")) == [acceptance(ConfigurePool, "main"), POOL]


def test_a_new_pool_gets_the_lowest_free_lane() -> None:
    events = when(ConfigurePool(pool="new"), *pools(0, 2))
    assert events[1] == configured(partition=1, pool="new")


def test_a_changed_pool_keeps_its_lane() -> None:
    events = when(ConfigurePool(pool="p2", time_scale=60, spot_gpus=8), *pools(0, 2))
    assert events[1] == configured(partition=2, pool="p2", time_scale=60, spot_gpus=8)


def test_an_unchanged_pool_is_accepted_as_a_duplicate() -> None:
    assert when(ConfigurePool(pool="main"), POOL) == [acceptance(ConfigurePool, "main", True)]


def test_a_pool_is_refused_once_no_lane_is_left() -> None:
    assert refusal(ConfigurePool(pool="new"), *pools(0, 1, 2)) == "no_lane_left"


def test_a_full_installation_still_changes_its_pools() -> None:
    events = when(ConfigurePool(pool="p1", round_ms=5), *pools(0, 1, 2))
    assert events[1] == configured(partition=1, pool="p1", round_ms=5)


def test_endpoints_have_a_numbering_of_their_own() -> None:
    command = ConfigureEndpoint(endpoint="chat", batch_tokens=4096)
    assert when(command, *pools(0, 1, 2)) == [acceptance(ConfigureEndpoint, "chat"), ENDPOINT]


def test_an_endpoint_is_refused_once_no_lane_is_left() -> None:
    others = [ENDPOINT.model_copy(update={"endpoint": f"e{n}", "partition": n}) for n in range(3)]
    command = ConfigureEndpoint(endpoint="chat", batch_tokens=4096)
    assert refusal(command, *others) == "no_lane_left"


def test_an_unchanged_endpoint_is_accepted_as_a_duplicate() -> None:
    command = ConfigureEndpoint(endpoint="chat", batch_tokens=4096)
    assert when(command, ENDPOINT) == [acceptance(ConfigureEndpoint, "chat", True)]


def test_a_tenant_is_registered() -> None:
    events = when(RegisterTenant(tenant="acme", default_pool="main"), POOL)
    assert events == [acceptance(RegisterTenant, "acme"), TENANT]


def test_a_tenant_of_an_unknown_pool_is_refused() -> None:
    assert refusal(RegisterTenant(tenant="acme", default_pool="main")) == "unknown_pool"


def test_an_unchanged_tenant_is_accepted_as_a_duplicate() -> None:
    again = RegisterTenant(tenant="acme", default_pool="main")
    assert when(again, POOL, TENANT) == [acceptance(RegisterTenant, "acme", True)]


def test_a_retired_tenant_may_come_back() -> None:
    again = RegisterTenant(tenant="acme", default_pool="main")
    history = (POOL, TENANT, TenantRetired(tenant="acme"))
    assert when(again, *history) == [acceptance(RegisterTenant, "acme"), TENANT]


def test_a_tenant_is_retired_once() -> None:
    command, gone = RetireTenant(tenant="acme"), TenantRetired(tenant="acme")
    assert when(command, POOL, TENANT) == [acceptance(RetireTenant, "acme"), gone]
    assert when(command, POOL, TENANT, gone) == [acceptance(RetireTenant, "acme", True)]


def test_an_unknown_tenant_cannot_be_retired() -> None:
    assert refusal(RetireTenant(tenant="acme")) == "unknown_tenant"


def test_a_key_is_created_by_its_hash() -> None:
    command = CreateKey(key_id="k1", sha256=HASH, role="submitter", tenant="acme")
    assert when(command, POOL, TENANT) == [acceptance(CreateKey, "k1"), KEY]
    assert when(command, POOL, TENANT, KEY) == [acceptance(CreateKey, "k1", True)]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (CreateKey(key_id="k2", sha256=HASH, role="submitter", tenant="ghost"), "unknown_tenant"),
        (CreateKey(key_id="k2", sha256=HASH, role="submitter"), "tenant_required"),
        (CreateKey(key_id="k2", sha256=HASH, role="admin", tenant="acme"), "tenant_not_allowed"),
        (CreateKey(key_id="k1", sha256=HASH, role="viewer", tenant="acme"), "key_exists"),
        (CreateKey(key_id="k1", sha256="0" * 64, role="submitter", tenant="acme"), "key_exists"),
        (RevokeKey(key_id="ghost"), "unknown_key"),
    ],
)
def test_an_invalid_key_command_is_refused(command: Command, reason: str) -> None:
    assert refusal(command, POOL, TENANT, KEY) == reason


def test_a_key_is_revoked_once_and_for_ever() -> None:
    command, gone = RevokeKey(key_id="k1"), KeyRevoked(key_id="k1")
    assert when(command, POOL, TENANT, KEY) == [acceptance(RevokeKey, "k1"), gone]
    assert when(command, POOL, TENANT, KEY, gone) == [acceptance(RevokeKey, "k1", True)]
    again = CreateKey(key_id="k1", sha256=HASH, role="submitter", tenant="acme")
    assert refusal(again, POOL, TENANT, KEY, gone) == "key_revoked"


def test_a_command_delivered_twice_is_answered_once() -> None:
    state = given(ACCESS)
    item = an_input(ConfigurePool(pool="main"), TOPIC)
    assert len(run(ACCESS, state, [item, item])) == 2
    assert run(ACCESS, state, [item]) == []


def test_a_refused_command_delivered_twice_is_answered_once() -> None:
    state = given(ACCESS)
    item = an_input(RevokeKey(key_id="ghost"), TOPIC)
    assert len(run(ACCESS, state, [item, item])) == 1


def test_undecodable_bytes_are_rejected_with_their_place() -> None:
    bad = an_input(Undecodable(TOPIC, 0, 7, "data: no JSON", "ab"), TOPIC)
    events = run(ACCESS, given(ACCESS), [bad])
    assert events == [
        InputRejected(topic=TOPIC, partition=0, offset=7, reason="data: no JSON", sha256="ab")
    ]


def test_a_command_of_another_service_is_ignored() -> None:
    stray = an_input(CancelJob(job_id="j1"), TOPIC, place="0/9")
    assert run(ACCESS, given(ACCESS), [stray]) == []


def test_each_event_carries_the_cause_and_the_trace_of_its_command() -> None:
    item = an_input(ConfigurePool(pool="main"), TOPIC, id="c7", traceparent="00-ab-cd-01")
    for fact in run_facts(ACCESS, given(ACCESS), [item]):
        assert (fact.cause, fact.traceparent) == ("c7", "00-ab-cd-01")


def test_the_state_is_the_fold_of_its_own_events() -> None:
    state = given(ACCESS)
    commands = [
        ConfigurePool(pool="main"),
        RegisterTenant(tenant="acme", default_pool="main"),
        CreateKey(key_id="k1", sha256=HASH, role="submitter", tenant="acme"),
        RevokeKey(key_id="k1"),
        RetireTenant(tenant="acme"),
        RetireTenant(tenant="ghost"),
    ]
    events = run(ACCESS, state, [an_input(command, TOPIC) for command in commands])
    assert fold(ACCESS, ACCESS.initial(0), events) == state
    assert ACCESS.next_wake(state) is None
