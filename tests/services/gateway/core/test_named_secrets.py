"""A job that names a secret which its tenant does not have is refused, by field, value and rule."""

from __future__ import annotations

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.core.named_secrets import check_secrets, known_secrets
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.contracts.registry import AccessView
from tests.shared.contracts.test_secret_registry import stored


def view() -> AccessView:
    view = AccessView()
    for event in (
        PoolConfigured(pool="gpu", partition=0, release=RELEASE),
        stored("db", 1),
        stored("api", 1, "bob"),
    ):
        view.apply(event)
    return view


def errors(env: dict[str, str]) -> list[tuple[str, object, str]]:
    with pytest.raises(InvalidBody) as raised:
        check_secrets(env, known_secrets(view(), "ada") or (), "ada")
    return [(error.field, error.value, error.rule) for error in raised.value.errors]


def test_a_secret_of_the_tenant_and_plain_values_pass() -> None:
    check_secrets({"A": "secret://db", "B": "text"}, known_secrets(view(), "ada") or (), "ada")


def test_a_secret_of_another_tenant_is_none() -> None:
    rule = "no such secret of tenant ada; `berth secrets set` makes one"
    assert errors({"A": "secret://api"}) == [("env.A", "secret://api", rule)]


@pytest.mark.parametrize("name", ["", "../bob/api", "..", "bob/api", "a b", "x" * 129])
def test_what_is_no_name_is_refused_as_such(name: str) -> None:
    [(field, value, rule)] = errors({"A": f"secret://{name}"})
    assert field == "env.A" and rule.startswith("name of a secret: 1 to 128 letters")
    assert value == (f"secret://{name}" if len(name) < 50 else None)


def test_until_an_upgrade_is_finished_nothing_is_refused() -> None:
    earlier = view()
    earlier.apply(PoolConfigured(pool="old", partition=1, release=0))
    assert known_secrets(earlier, "ada") is None
