"""Claims of a verified token map to a bearer by configured names."""

from __future__ import annotations

import pytest

from shared.contracts.registry import Bearer
from shared.oidc.claims import BadClaims, ClaimRules, bearer_of
from tests.shared.oidc.provider import CLAIMS


def test_claims_are_found_by_their_configured_names() -> None:
    rules = ClaimRules(
        "https://berth/tenant", "realm.roles", {"users": "viewer", "ops": "operator"}
    )
    claims_in = {
        "sub": "s",
        "exp": 9,
        "https://berth/tenant": "ada",
        "realm": {"roles": ["x", "users"]},
    }
    assert bearer_of(claims_in, rules) == Bearer("s", "viewer", "ada", 9)
    both = {**claims_in, "realm": {"roles": ["users", "ops"]}}
    assert bearer_of(both, rules) == Bearer("s", "operator", None, 9)


@pytest.mark.parametrize(
    "claims",
    [
        {"role": None},
        {"role": "root"},
        {"role": ["root", 7]},
        {"role": {"boss": 1}},
        {"tenant": None},
        {"tenant": ""},
        {"tenant": ["ada"]},
        {"sub": ""},
        {"sub": "s" * 129},
        {"sub": "a\nb"},
        {"exp": None},
    ],
)
def test_ambiguous_claims_are_rejected(claims: dict[str, object]) -> None:
    claims_in = {"sub": "s", "exp": 9, "tenant": "ada", "role": "submitter", **claims}
    with pytest.raises(BadClaims):
        bearer_of(claims_in, CLAIMS)
