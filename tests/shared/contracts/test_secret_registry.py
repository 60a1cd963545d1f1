"""The fold of secrets keeps the present ones by tenant, and versions of deleted ones."""

from __future__ import annotations

from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.registry import AccessView
from shared.contracts.secret_registry import SecretRegistry
from shared.contracts.secrets import (
    SealedValue,
    SecretDeleted,
    SecretRewrapped,
    SecretStored,
    WrappedKey,
)


def stored(name: str, version: int, tenant: str = "ada") -> SecretStored:
    sealed = SealedValue(key=WrappedKey(key_id="k1", data="a2V5"), data=f"dmFsdWU{version}")
    return SecretStored(
        tenant=tenant, name=name, version=version, sealed=sealed, set_by="key:a", set_at=version
    )


def test_secrets_of_two_tenants_with_one_name_are_two() -> None:
    view = AccessView()
    for event in (stored("db", 1), stored("db", 1, "bob"), stored("api", 2)):
        view.apply(event)
    assert view.secrets.of("ada") == {"db": stored("db", 1), "api": stored("api", 2)}
    assert view.secrets.get("bob", "api") is None
    assert [(s.tenant, s.name) for s in view.secrets] == [
        ("ada", "db"),
        ("ada", "api"),
        ("bob", "db"),
    ]


def test_a_version_is_never_used_again_not_even_after_a_deletion() -> None:
    secrets = SecretRegistry()
    secrets.apply(stored("db", 1))
    secrets.apply(SecretDeleted(tenant="ada", name="db"))
    assert secrets.get("ada", "db") is None
    assert secrets.next_version("ada") == 2 and secrets.next_version("bob") == 1


def test_a_tenant_that_was_retired_has_no_secrets_when_it_is_registered_again() -> None:
    ada, view = TenantRegistered(tenant="ada", default_pool="main"), AccessView()
    for event in (ada, stored("db", 1), stored("db", 1, "bob"), TenantRetired(tenant="ada")):
        view.apply(event)
    assert list(view.secrets) == [stored("db", 1, "bob")]
    view.apply(ada)
    assert view.secrets.get("ada", "db") is None and view.secrets.next_version("ada") == 2


def test_another_key_changes_neither_version_nor_ciphertext() -> None:
    secrets, key = SecretRegistry(), WrappedKey(key_id="k2", data="bmV3")
    secrets.apply(stored("db", 1))
    rewrapped = SecretRewrapped(tenant="ada", name="db", version=1, key=key)
    secrets.apply(rewrapped)
    present = secrets.get("ada", "db")
    assert present is not None and present.sealed.key == key
    assert present.sealed.data == stored("db", 1).sealed.data
    secrets.apply(SecretDeleted(tenant="ada", name="db"))
    secrets.apply(rewrapped)
    assert secrets.get("ada", "db") is None
