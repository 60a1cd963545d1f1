"""Access stores ciphertext under the version that was encrypted with it, within bounds."""

from __future__ import annotations

import pytest

from services.access.core.outcomes import Denial, Grant
from services.access.core.secrets import decide_secret
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.registry import AccessView
from shared.contracts.secrets import (
    MAX_SECRETS,
    DeleteSecret,
    RewrapSecret,
    SealedValue,
    SecretDeleted,
    SecretRewrapped,
    SecretStored,
    StoreSecret,
    WrappedKey,
)

KEY = WrappedKey(key_id="k1", data="a2V5")
NEW_KEY = WrappedKey(key_id="k2", data="bmV3")
AT = 1_700_000_000_000


def command(name: str = "db", version: int = 1, data: str = "dmFsdWU") -> StoreSecret:
    sealed = SealedValue(key=KEY, data=data)
    return StoreSecret(tenant="ada", name=name, version=version, sealed=sealed, set_by="key:a")


@pytest.fixture
def view() -> AccessView:
    view = AccessView()
    view.apply(TenantRegistered(tenant="ada", default_pool="gpu"))
    return view


def store(view: AccessView, stored: StoreSecret) -> None:
    outcome = decide_secret(view, stored, AT)
    assert isinstance(outcome, Grant) and outcome.event is not None
    view.apply(outcome.event)


def reason(view: AccessView, denied: StoreSecret | RewrapSecret | DeleteSecret) -> str:
    outcome = decide_secret(view, denied, AT)
    assert isinstance(outcome, Denial)
    return outcome.reason


def test_a_secret_is_stored_with_its_time_and_sender(view: AccessView) -> None:
    outcome = decide_secret(view, command(), AT)
    expected = SecretStored(**dict(command()), set_at=AT)
    assert outcome == Grant("ada/db", expected)


def test_the_same_ciphertext_again_changes_nothing(view: AccessView) -> None:
    store(view, command())
    again = command().model_copy(update={"set_by": "key:other"})
    assert decide_secret(view, again, AT + 1) == Grant("ada/db", None)


@pytest.mark.parametrize("version", [1, 3])
def test_a_version_that_is_not_the_next_one_is_refused(view: AccessView, version: int) -> None:
    store(view, command())
    other = command("api", version)
    assert reason(view, other) == "version_conflict"
    store(view, command("api", 2))


def test_an_old_ciphertext_does_not_come_back(view: AccessView) -> None:
    store(view, command())
    store(view, command(data="bmV1", version=2))
    assert reason(view, command()) == "version_conflict"
    outcome = decide_secret(view, DeleteSecret(tenant="ada", name="db"), AT)
    assert outcome == Grant("ada/db", SecretDeleted(tenant="ada", name="db"))
    view.apply(SecretDeleted(tenant="ada", name="db"))
    assert reason(view, command()) == "version_conflict"
    assert reason(view, DeleteSecret(tenant="ada", name="db")) == "unknown_secret"


def test_an_unknown_or_retired_tenant_has_none(view: AccessView) -> None:
    store(view, command())
    unknown = command().model_copy(update={"tenant": "eve"})
    assert reason(view, unknown) == "unknown_tenant"
    view.apply(TenantRetired(tenant="ada"))
    assert reason(view, command("api", 2)) == "unknown_tenant"
    assert reason(view, DeleteSecret(tenant="ada", name="db")) == "unknown_secret"
    view.apply(TenantRegistered(tenant="ada", default_pool="gpu"))
    assert reason(view, command()) == "version_conflict"
    store(view, command(version=2))


def test_number_and_size_are_bounded_and_a_present_one_can_be_replaced(view: AccessView) -> None:
    for number in range(MAX_SECRETS):
        store(view, command(f"s{number}", number + 1))
    assert reason(view, command("more", MAX_SECRETS + 1)) == "too_many_secrets"
    store(view, command("s0", MAX_SECRETS + 1))
    large = "x" * 45_000
    version = MAX_SECRETS + 2
    with pytest.raises(AssertionError):
        for number in range(1, MAX_SECRETS):
            store(view, command(f"s{number}", version, large))
            version += 1
    assert reason(view, command("s200", version, large)) == "secrets_too_large"


def test_a_key_is_replaced_only_under_the_present_version(view: AccessView) -> None:
    store(view, command())
    rewrap = RewrapSecret(tenant="ada", name="db", version=1, key=NEW_KEY)
    rewrapped = SecretRewrapped(tenant="ada", name="db", version=1, key=NEW_KEY)
    assert decide_secret(view, rewrap, AT) == Grant("ada/db", rewrapped)
    view.apply(rewrapped)
    assert decide_secret(view, rewrap, AT) == Grant("ada/db", None)
    store(view, command(version=2))
    assert reason(view, rewrap) == "version_conflict"
    assert reason(view, rewrap.model_copy(update={"name": "api"})) == "unknown_secret"
