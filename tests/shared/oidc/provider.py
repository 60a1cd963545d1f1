"""Rules for OIDC tokens, and a helper that returns the reason of a rejection."""

from __future__ import annotations

import pytest

from shared.oidc.claims import ClaimRules
from shared.oidc.key_set import KeySet
from shared.oidc.tokens import BadToken, TokenRules, verify_token
from tests.shared.oidc.identity import AUDIENCE, ISSUER

CLAIMS = ClaimRules("tenant", "role", {"submitter": "submitter", "boss": "admin", "v": "viewer"})
RULES = TokenRules(ISSUER, AUDIENCE, 30, CLAIMS)


async def refusal(token: str, keys: KeySet) -> str:
    with pytest.raises(BadToken) as caught:
        await verify_token(token, RULES, keys)
    return str(caught.value)
