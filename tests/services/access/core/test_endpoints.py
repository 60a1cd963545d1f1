"""Endpoints: names that clients send belong to one of them, and each change has a version."""

from __future__ import annotations

import pytest

from services.access.core.configuration import decide_configuration
from services.access.core.outcomes import Denial, Grant
from services.access.core.updates import update_endpoint
from shared.contracts.access import TenantRegistered
from shared.contracts.base import Command, Event
from shared.contracts.endpoints import (
    ConfigureEndpoint,
    DeleteEndpoint,
    EndpointConfigured,
    EndpointDeleted,
    SharedWithRetraining,
    Upstream,
)
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateEndpoint

ENGINE = Upstream(name="a", url="http://engine-1:8000")
CHAT = EndpointConfigured(
    endpoint="meta/Llama-3", partition=1, aliases=("chat",), adapters=("chat-de",)
)


def view_of(*events: Event) -> AccessView:
    view = AccessView()
    for event in events:
        view.apply(event)
    return view


def denial_of(command: Command, *events: Event) -> Denial:
    outcome = decide_configuration(view_of(*events), 4, command)
    assert isinstance(outcome, Denial)
    return outcome


def event_of(command: Command, *events: Event) -> Event | None:
    outcome = decide_configuration(view_of(*events), 4, command)
    assert isinstance(outcome, Grant)
    return outcome.event


def test_every_setting_of_the_command_is_recorded() -> None:
    command = ConfigureEndpoint(endpoint="m", upstreams=(ENGINE,), queue_limit=9, if_version=None)
    expected = EndpointConfigured(endpoint="m", partition=0, upstreams=(ENGINE,), queue_limit=9)
    assert event_of(command) == expected


@pytest.mark.parametrize("field", ["aliases", "adapters"])
@pytest.mark.parametrize("name", ["meta/Llama-3", "chat", "chat-de"])
def test_a_name_of_another_endpoint_is_denied(field: str, name: str) -> None:
    command = ConfigureEndpoint.model_validate({"endpoint": "m", field: (name,)})
    detail = f"model: {name!r}: is a name of endpoint meta/Llama-3; use another name"
    assert denial_of(command, CHAT) == Denial("m", "model_taken", detail)


def test_an_alias_of_another_endpoint_names_no_new_one() -> None:
    assert denial_of(ConfigureEndpoint(endpoint="chat"), CHAT).reason == "model_taken"


def test_a_name_is_free_once_its_endpoint_gives_it_up() -> None:
    without = CHAT.model_copy(update={"aliases": ()})
    assert event_of(ConfigureEndpoint(endpoint="chat"), CHAT, without) is not None


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"aliases": ("m",)}, "aliases, adapters: 'm': is given twice"),
        ({"aliases": ("b",), "adapters": ("b",)}, "aliases, adapters: 'b': is given twice"),
        ({"upstreams": (ENGINE, ENGINE)}, "upstreams: 'a': is given twice"),
    ],
)
def test_a_name_is_given_once(fields: dict[str, object], detail: str) -> None:
    denial = denial_of(ConfigureEndpoint.model_validate({"endpoint": "m", **fields}))
    expected = Denial("m", "name_repeated", f"{detail}; each name once is allowed")
    assert denial == expected


def test_a_fallback_is_another_endpoint_that_exists() -> None:
    itself = denial_of(ConfigureEndpoint(endpoint="m", fallbacks=("m",)))
    detail = "fallbacks: 'm': is the endpoint itself; name another one"
    assert itself == Denial("m", "fallback_to_itself", detail)
    unknown = denial_of(ConfigureEndpoint(endpoint="m", fallbacks=("chat",)), CHAT)
    detail = "fallbacks: 'chat': no such endpoint; create it first"
    assert unknown == Denial("m", "unknown_endpoint", detail)
    assert event_of(ConfigureEndpoint(endpoint="m", fallbacks=(CHAT.endpoint,)), CHAT) is not None


def test_an_endpoint_is_opened_to_registered_tenants_alone() -> None:
    command = ConfigureEndpoint(endpoint="m", tenants=("ada",))
    detail = "tenants: 'ada': no such tenant; register it first"
    assert denial_of(command) == Denial("m", "unknown_tenant", detail)
    assert event_of(command, TenantRegistered(tenant="ada", default_pool="p")) is not None


def test_of_two_changes_that_are_based_on_one_version_the_second_is_denied() -> None:
    base = version_of(CHAT)
    changed = CHAT.model_copy(update={"queue_limit": 7})
    command = ConfigureEndpoint(endpoint=CHAT.endpoint, queue_limit=9, if_version=base)
    denial = denial_of(command, CHAT, changed)
    rule = f"version {version_of(changed)}; read it again and repeat the change"
    detail = f"if_version: '{base}': endpoint {CHAT.endpoint} has {rule}"
    assert denial == Denial(CHAT.endpoint, "version_conflict", detail)
    assert event_of(command, CHAT) is not None


def test_an_endpoint_is_created_only_once_where_that_is_the_condition() -> None:
    command = ConfigureEndpoint(endpoint=CHAT.endpoint, queue_limit=9, if_version="absent")
    assert event_of(command) is not None
    assert denial_of(command, CHAT).reason == "version_conflict"


def test_an_endpoint_that_is_deleted_gives_back_its_lane_and_its_names() -> None:
    deleted = event_of(DeleteEndpoint(endpoint=CHAT.endpoint), CHAT)
    assert deleted == EndpointDeleted(endpoint=CHAT.endpoint, partition=1)
    low = EndpointConfigured(endpoint="low", partition=0)
    assert isinstance(deleted, EndpointDeleted)
    created = event_of(ConfigureEndpoint(endpoint="chat"), CHAT, low, deleted)
    assert created == EndpointConfigured(endpoint="chat", partition=1)


def test_only_an_endpoint_that_exists_and_that_none_falls_back_to_is_deleted() -> None:
    command = DeleteEndpoint(endpoint=CHAT.endpoint)
    detail = f"endpoint: {CHAT.endpoint!r}: no such endpoint"
    assert denial_of(command) == Denial(CHAT.endpoint, "unknown_endpoint", detail)
    user = EndpointConfigured(endpoint="m", partition=0, fallbacks=(CHAT.endpoint,))
    detail = f"endpoint: {CHAT.endpoint!r}: is a fallback of m; change that first"
    assert denial_of(command, CHAT, user) == Denial(CHAT.endpoint, "endpoint_in_use", detail)


def test_until_the_upgrade_is_finished_no_engine_is_shared_with_retraining() -> None:
    earlier = PoolConfigured(pool="main", partition=0, release=RELEASE - 1)
    shared = SharedWithRetraining()
    finished = earlier.model_copy(update={"release": RELEASE})
    created = ConfigureEndpoint(endpoint="m", retraining=shared)
    assert denial_of(created, earlier, CHAT).reason == "upgrade_not_finished"
    assert event_of(created, finished, CHAT) is not None
    changed = UpdateEndpoint(endpoint=CHAT.endpoint, retraining=shared)
    denied = update_endpoint(view_of(earlier, CHAT), changed)
    assert isinstance(denied, Denial) and denied.reason == "upgrade_not_finished"
    assert isinstance(update_endpoint(view_of(finished, CHAT), changed), Grant)


def test_a_changed_endpoint_keeps_its_lane() -> None:
    view = AccessView()
    view.apply(EndpointConfigured(endpoint="chat", partition=2, batch_tokens=100))
    command = ConfigureEndpoint(endpoint="chat", batch_tokens=200)
    outcome = decide_configuration(view, 4, command)
    assert isinstance(outcome, Grant)
    assert isinstance(outcome.event, EndpointConfigured)
    assert (outcome.event.partition, outcome.event.batch_tokens) == (2, 200)
