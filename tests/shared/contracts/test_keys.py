"""API keys: parsing, and comparison with the stored hash."""

from __future__ import annotations

import pytest

from shared.contracts.keys import (
    MAX_KEY_CHARS,
    Key,
    format_key,
    hash_secret,
    parse_bearer,
    parse_key,
    verify_secret,
)


def test_a_key_id_may_contain_dots_and_a_secret_may_not() -> None:
    assert parse_key(format_key("a.b", "secret")) == Key("a.b", "secret")


@pytest.mark.parametrize("text", ["", "a", "a.", ".a", ".", "a." + "x" * MAX_KEY_CHARS])
def test_a_malformed_key_is_not_parsed(text: str) -> None:
    assert parse_key(text) is None


def test_the_longest_key_is_parsed() -> None:
    assert parse_key("a." + "x" * (MAX_KEY_CHARS - 2)) is not None


def test_the_representation_of_a_key_has_no_secret() -> None:
    assert repr(Key("k", "secret")) == "Key('k')"


def test_a_secret_has_one_hash() -> None:
    assert verify_secret("secret", hash_secret("secret"))
    assert not verify_secret("Secret", hash_secret("secret"))


def test_a_secret_that_is_not_unicode_can_be_compared() -> None:
    assert not verify_secret("\udc80", hash_secret("secret"))


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        ("Bearer a.b", "a.b"),
        ("bearer  a.b ", "a.b"),
        ("Basic a.b", ""),
        ("a.b", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_only_a_bearer_header_has_a_secret(header: str | None, secret: str) -> None:
    assert parse_bearer(header) == secret
