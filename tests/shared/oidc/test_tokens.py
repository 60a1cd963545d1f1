"""Tokens of an identity provider are verified; every forgery is rejected."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from services.gateway.settings import GatewaySettings
from shared.oidc.key_set import KeySet
from shared.oidc.tokens import BadToken, TokenRules, is_token, verify_token
from shared.process.settings import BadSettings, read_settings
from tests.shared.oidc.identity import AUDIENCE, ISSUER, Provider, new_rsa, public
from tests.shared.oidc.provider import CLAIMS, RULES, refusal


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_a_token_of_either_algorithm_says_who_asks(idp: Provider, keys: KeySet) -> None:
    for kid in ("r1", "e1"):
        token = idp.token(kid)
        assert is_token(token)
        bearer = await verify_token(token, RULES, keys)
        assert (bearer.key_id, bearer.role, bearer.tenant) == ("grace", "submitter", "ada")
        assert bearer.principal == "oidc:grace" and bearer.expires_s
    assert idp.requests == 1


DAY_S = 86_400
"""These are made when the tests are collected, and tried when their turn comes."""


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://evil.example"}, "iss"),
        ({"iss": None}, "required"),
        ({"aud": "other"}, "aud"),
        ({"aud": None}, "required"),
        ({"exp": None}, "required"),
        ({"sub": None}, "required"),
        ({"exp": int(time.time()) - 31}, "exp"),
        ({"nbf": int(time.time()) + DAY_S}, "nbf"),
        ({"iat": int(time.time()) + DAY_S}, "nbf or iat"),
        ({"exp": "soon"}, "invalid"),
        ({"aud": ["other", "another"]}, "aud"),
    ],
)
async def test_a_token_with_an_invalid_claim_is_rejected(
    idp: Provider, keys: KeySet, claims: dict[str, Any], reason: str
) -> None:
    assert reason in await refusal(idp.token(**claims), keys)


async def test_clocks_may_differ_by_the_leeway_alone(idp: Provider, keys: KeySet) -> None:
    now = int(time.time())
    await verify_token(idp.token(exp=now - 10), RULES, keys)
    await verify_token(idp.token(nbf=now + 10, iat=now + 10), RULES, keys)
    strict = TokenRules(ISSUER, AUDIENCE, 0, CLAIMS)
    with pytest.raises(BadToken, match="exp"):
        await verify_token(idp.token(exp=now - 10), strict, keys)


async def test_an_unsigned_token_is_rejected(idp: Provider, keys: KeySet) -> None:
    body = idp.token().split(".")[1]
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        header = _part({"alg": algorithm, "kid": "r1", "typ": "JWT"})
        for signature in ("", idp.token().split(".")[2]):
            await refusal(f"{header}.{body}.{signature}", keys)
    assert idp.requests == 0


async def test_a_public_key_is_no_secret_of_hs256(idp: Provider, keys: KeySet) -> None:
    body = idp.token().split(".")[1]
    pem = (
        idp.keys["r1"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    for algorithm in ("HS256", "RS256", "ES256"):
        content = f"{_part({'alg': algorithm, 'kid': 'r1'})}.{body}"
        mac = hmac.digest(pem, content.encode(), "sha256")
        signature = base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
        await refusal(f"{content}.{signature}", keys)


@pytest.mark.parametrize(
    "algorithm", ["HS256", "HS512", "RS384", "RS512", "PS256", "ES384", "EdDSA"]
)
async def test_only_two_algorithms_are_taken(idp: Provider, keys: KeySet, algorithm: str) -> None:
    _, body, signature = idp.token().split(".")
    assert "alg" in await refusal(
        f"{_part({'alg': algorithm, 'kid': 'r1'})}.{body}.{signature}", keys
    )


async def test_an_algorithm_that_is_not_its_keys_is_refused(idp: Provider, keys: KeySet) -> None:
    token = jwt.encode({"sub": "x"}, idp.keys["r1"], "RS256", {"kid": "e1"})
    assert await refusal(token, keys) == "alg: differs from the key's algorithm"


@pytest.mark.parametrize(
    "header",
    [
        {"jku": "https://evil.example/keys"},
        {"x5u": "https://evil.example/c"},
        {"x5c": ["a"]},
        {"jwk": {"kty": "RSA"}},
        {"crit": ["b64"], "b64": False},
        {"x5t": "a"},
        {"kid": ""},
        {"kid": "k" * 257},
        {"typ": "secevent+jwt"},
        {"cty": "JWT"},
    ],
)
async def test_a_header_that_could_lead_elsewhere_is_refused(
    idp: Provider, keys: KeySet, header: dict[str, object]
) -> None:
    own = new_rsa()
    idp.keys["r1"] = own
    await refusal(idp.token(headers=header), keys)
    assert idp.requests == 0


async def test_a_key_in_the_token_itself_is_not_taken(idp: Provider, keys: KeySet) -> None:
    own = new_rsa()
    idp.keys["mine"] = own
    token = idp.token("mine", headers={"jwk": public(own, "mine")})
    assert await refusal(token, keys) == "jwk: header not allowed"


async def test_a_changed_or_foreign_signature_is_refused(idp: Provider, keys: KeySet) -> None:
    head, body, signature = idp.token().split(".")
    other = _part({**jwt.decode(idp.token(), options={"verify_signature": False}), "role": "boss"})
    assert await refusal(f"{head}.{other}.{signature}", keys) == "signature: invalid"
    idp.keys["r1"] = new_rsa()
    assert await refusal(idp.token(), keys) == "signature: invalid"
    deep = base64.urlsafe_b64encode(b'{"a":' + b"[" * 5000).rstrip(b"=").decode()
    await refusal(f"{deep}.{body}.{signature}", keys)
    for broken in (f"{head}.{body}.", f"{head}.{body}", "eyJ", "eyJ.eyJ.x", f"{head}..{signature}"):
        await refusal(broken, keys)


async def test_a_token_that_is_too_long_is_not_even_read(idp: Provider, keys: KeySet) -> None:
    assert "longer than 8192" in await refusal(idp.token(more="x" * 9000), keys)
    assert idp.requests == 0


def test_a_half_configured_provider_ends_the_start() -> None:
    given = {"BERTH_KAFKA": "k:1", "BERTH_DATA": "/d", "BERTH_OIDC_ISSUER": ISSUER}
    with pytest.raises(BadSettings, match="together"):
        read_settings(GatewaySettings, given)
    with pytest.raises(BadSettings, match="OIDC_KEYS"):
        read_settings(GatewaySettings, given | {"BERTH_OIDC_KEYS": "http://idp/keys"})
    with pytest.raises(BadSettings, match="OIDC_LEEWAY_S"):
        read_settings(GatewaySettings, given | {"BERTH_OIDC_LEEWAY_S": "61"})
