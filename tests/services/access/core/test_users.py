"""A user of a tenant is registered once, changed by what is named, and deleted with its keys."""

from __future__ import annotations

import pytest

from services.access.core.outcomes import Denial, Grant
from services.access.core.users import UserCommand, decide_user
from shared.contracts.access import KeyCreated, KeyRevoked, TenantRegistered, TenantRetired
from shared.contracts.bounds import MOST_GPUS, UNBOUNDED, JobBounds, UserBounds
from shared.contracts.pools import PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.secrets import MAIL, SealedValue, SecretDeleted, SecretStored, WrappedKey
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateUser
from shared.contracts.users import DeleteUser, RegisterUser, UserDeleted, UserRegistered

SEALED = SealedValue(key=WrappedKey(key_id="k1", data="a2V5"), data="dmFsdWU")


@pytest.fixture
def view() -> AccessView:
    view = AccessView()
    view.apply(PoolConfigured(pool="gpu", partition=0))
    view.apply(TenantRegistered(tenant="vision", default_pool="gpu"))
    view.apply(key("k1", "ada"))
    return view


def key(key_id: str, user: str | None) -> KeyCreated:
    return KeyCreated(key_id=key_id, sha256="0" * 64, role="submitter", tenant="vision", user=user)


def register(user: str = "ada", tenant: str = "vision", **bounds: object) -> RegisterUser:
    return RegisterUser.model_validate({"user": user, "tenant": tenant, **bounds})


def update(user: str = "ada", **bounds: object) -> UpdateUser:
    return UpdateUser.model_validate({"user": user, "tenant": "vision", **bounds})


def grant(view: AccessView, command: UserCommand) -> Grant:
    outcome = decide_user(view, command)
    assert isinstance(outcome, Grant), outcome
    for event in (outcome.event, *outcome.others):
        if event is not None:
            view.apply(event)
    return outcome


def denial(view: AccessView, command: UserCommand) -> Denial:
    outcome = decide_user(view, command)
    assert isinstance(outcome, Denial), outcome
    return outcome


def test_a_user_has_the_named_bounds_and_of_the_others_none(view: AccessView) -> None:
    granted = grant(view, register(max_job_gpus=2))
    assert granted.event == UserRegistered(
        tenant="vision", user="ada", bounds=UserBounds(max_job_gpus=2)
    )
    none = {**UNBOUNDED.model_dump(include=set(JobBounds.model_fields)), "max_gpus": MOST_GPUS}
    assert UserBounds().model_dump() == none
    assert grant(view, register(max_job_gpus=2)).event is None, "the same again"


def test_a_change_keeps_what_it_does_not_name_and_null_is_no_bound(view: AccessView) -> None:
    grant(view, register(max_job_gpus=2, max_open_jobs=5))
    version = version_of(view.users.get("vision", "ada"))
    grant(view, update(max_open_jobs=None, highest_class="low", if_version=version))
    assert view.users.bounds_of("vision", "ada") == UserBounds(max_job_gpus=2, highest_class="low")
    assert grant(view, update(max_job_gpus=2)).event is None
    late = denial(view, update(max_job_gpus=3, if_version=version))
    assert late.reason == "version_conflict"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (register(max_job_gpus=3), "user_exists"),
        (register(tenant="absent"), "unknown_tenant"),
        (register("unknown"), "name_reserved"),
        (register("bob", pools=["other"]), "unknown_pool"),
        (update("bob", max_job_gpus=3), "unknown_user"),
        (update(pools=["other"]), "unknown_pool"),
        (DeleteUser(tenant="vision", user="bob"), "unknown_user"),
        (DeleteUser(tenant="other", user="ada"), "unknown_user"),
    ],
)
def test_a_refusal_has_a_reason(view: AccessView, command: UserCommand, reason: str) -> None:
    grant(view, register())
    refused = denial(view, command)
    assert refused.reason == reason and refused.of == f"{command.tenant}/{command.user}"


def test_a_tenant_has_so_many_users_at_most(
    view: AccessView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.access.core.users.MAX_USERS", 1)
    grant(view, register())
    assert denial(view, register("bob")).reason == "too_many_users"
    assert grant(view, register()).event is None


def test_keys_and_address_end_with_their_user_and_others_stay(view: AccessView) -> None:
    grant(view, register())
    view.apply(key("k2", "ada"))
    view.apply(key("k3", None))
    view.apply(
        SecretStored(
            tenant="vision", name=MAIL + "ada", version=1, sealed=SEALED, set_by="key:k", set_at=1
        )
    )
    deleted = grant(view, DeleteUser(tenant="vision", user="ada"))
    assert deleted.event == UserDeleted(tenant="vision", user="ada")
    assert deleted.others == (
        KeyRevoked(key_id="k1"),
        KeyRevoked(key_id="k2"),
        SecretDeleted(tenant="vision", name=MAIL + "ada"),
    )
    assert list(view.revoked) == ["k1", "k2"] and view.users.get("vision", "ada") is None


def test_a_user_that_keys_name_alone_is_deleted_too(view: AccessView) -> None:
    deleted = grant(view, DeleteUser(tenant="vision", user="ada"))
    assert deleted.others == (KeyRevoked(key_id="k1"),)


def test_a_retired_tenant_has_no_users(view: AccessView) -> None:
    grant(view, register())
    view.apply(TenantRetired(tenant="vision"))
    assert not view.users.of("vision")
    assert denial(view, register()).reason == "unknown_tenant"


def test_a_user_of_whom_an_address_alone_is_left_is_deleted_too(view: AccessView) -> None:
    view.apply(
        SecretStored(
            tenant="vision", name=MAIL + "eve", version=1, sealed=SEALED, set_by="key:k", set_at=1
        )
    )
    deleted = grant(view, DeleteUser(tenant="vision", user="eve"))
    assert deleted.others == (SecretDeleted(tenant="vision", name=MAIL + "eve"),)
