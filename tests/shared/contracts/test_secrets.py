"""The name of a secret is not a path, and variables name secrets by a prefix."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.secrets import SECRET_NAME, DeleteSecret, secrets_named


def test_variables_that_name_a_secret_are_those_with_the_prefix() -> None:
    env = {"A": "secret://db", "B": "plain", "C": "secret://../x", "D": "a secret://db"}
    assert secrets_named(env) == {"A": "db", "C": "../x"}


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\n", "x" * 129, "ä"])
def test_what_is_no_name_is_refused_by_command_and_pattern_alike(name: str) -> None:
    assert SECRET_NAME.fullmatch(name) is None
    with pytest.raises(ValidationError):
        DeleteSecret(tenant="ada", name=name)


@pytest.mark.parametrize("name", ["DB_PASSWORD", "a.b-c", "_", "x" * 128])
def test_a_name_is_one_for_command_and_pattern_alike(name: str) -> None:
    assert SECRET_NAME.fullmatch(name) and DeleteSecret(tenant="ada", name=name).name == name
