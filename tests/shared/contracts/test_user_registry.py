"""Users are known by tenant and name, and one that is not registered has no bounds."""

from __future__ import annotations

from shared.contracts.bounds import UserBounds
from shared.contracts.user_registry import NO_BOUNDS, UserRegistry
from shared.contracts.users import UserDeleted, UserRegistered


def test_users_of_one_name_are_two_in_two_tenants() -> None:
    users, narrow = UserRegistry(), UserBounds(max_open_jobs=1)
    users.apply(UserRegistered(tenant="a", user="ada", bounds=narrow))
    users.apply(UserRegistered(tenant="b", user="ada", bounds=UserBounds()))
    assert users.bounds_of("a", "ada") == narrow
    assert users.bounds_of("b", "ada") == users.bounds_of("c", "ada") == NO_BOUNDS
    assert users.bounds_of("a", None) == NO_BOUNDS, "a key that names no user"
    users.apply(UserDeleted(tenant="a", user="ada"))
    assert users.get("a", "ada") is None and users.get("b", "ada") is not None
    users.drop("b")
    assert list(users.of("b")) == []
