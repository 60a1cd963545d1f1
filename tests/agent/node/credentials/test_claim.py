"""The lock of an identity on one machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from berth_agent.node.credentials import claim
from berth_agent.node.credentials.claim import IdentityClaim, IdentityInUse
from berth_agent.node.credentials.identity import Identity


@pytest.fixture
def identity(request: pytest.FixtureRequest) -> Identity:
    return Identity(request.node.name, "gpu", "s", "https://a", ("https://e:1",), 1, True, "")


@pytest.fixture
def claims() -> Iterator[Callable[[Identity], IdentityClaim]]:
    """Yield a function that makes claims; they end with the test, as with a process."""
    made: list[IdentityClaim] = []

    def claimed(identity: Identity) -> IdentityClaim:
        made.append(IdentityClaim())
        made[-1].hold(identity)
        return made[-1]

    yield claimed
    for claim_ in made:
        for held in claim_._held.values():
            if held is not None:
                held.close()


def test_a_second_agent_is_refused_and_a_renewal_adds_a_name(
    identity: Identity, claims: Callable[[Identity], IdentityClaim]
) -> None:
    first = claims(identity)
    with pytest.raises(IdentityInUse, match="another state folder"):
        claims(identity)
    renewed = replace(identity, next_secret="n" * 64)
    first.hold(renewed)
    with pytest.raises(IdentityInUse):
        claims(replace(identity, secret="n" * 64))
    first.hold(replace(identity, secret="n" * 64))
    claims(identity)


def test_a_name_that_another_user_took_keeps_no_agent_out(
    identity: Identity, claims: Callable[[Identity], IdentityClaim], monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = claim._names(identity)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as taken:
        taken.bind(name)
        claims(identity)  # It is bound, and not listened on.
        taken.listen(1)
        with pytest.raises(IdentityInUse):
            claims(identity)
        monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
        claims(identity)
