"""An address is one address, and users set their own alone."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.gateway.core.key_bounds import NotPermitted
from services.gateway.routes.users import MailAddressRequest, check_own
from shared.contracts.registry import Bearer


@pytest.mark.parametrize("address", ["a@example.org", "first.last+berth@mail.example.org", "o'x@h"])
def test_an_address_is_taken_as_it_is(address: str) -> None:
    assert MailAddressRequest(address=address).address == address


@pytest.mark.parametrize(
    "address",
    [
        "=?x?q??=@allowed.org",
        "a=b@example.org",
        "a?b@example.org",
        ".a@example.org",
        "a.@example.org",
        "a..b@example.org",
        "a" * 65 + "@example.org",
        "a." * 32 + "a@example.org",
        "",
        "alice",
        "@example.org",
        "a@",
        "a@b@c.org",
        "a@example.org\n",
        "a@example.org\r\nBcc: x@example.org",
        "a b@example.org",
        "=?x?q??=@example.org",
        "a..b@example.org",
        "<a@example.org>",
        "a@example.org, b@example.org",
        "a@-example.org",
        "ä@example.org",
        "a@" + "x" * 260,
    ],
)
def test_another_text_is_refused(address: str) -> None:
    with pytest.raises(ValidationError):
        MailAddressRequest(address=address)


def test_users_set_their_own_address_and_operators_any() -> None:
    check_own(Bearer("k1", "submitter", "ada", user="alice"), "alice")
    check_own(Bearer("ops", "operator", None), "alice")
    for bearer in (Bearer("k1", "submitter", "ada", user="bob"), Bearer("k1", "submitter", "ada")):
        with pytest.raises(NotPermitted):
            check_own(bearer, "alice")
