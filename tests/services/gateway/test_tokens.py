"""Tokens of an identity provider: every forgery is refused, keys rotate, outages are told apart."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from services.gateway.core.claims import BadClaims, ClaimRules, bearer_of
from services.gateway.key_set import (
    MAX_AGE_S,
    REFRESH_S,
    RETRY_S,
    KeySet,
    KeysUnavailable,
    usable_keys,
)
from services.gateway.settings import GatewaySettings
from services.gateway.tokens import BadToken, TokenRules, is_token, verify_token
from shared.contracts.registry import Bearer
from shared.settings import BadSettings, read_settings
from tests.services.gateway.identity import (
    AUDIENCE,
    ISSUER,
    Provider,
    new_ec,
    new_rsa,
    provider,
    public,
)
from tests.services.gateway.stack import Stack, as_gateway, ready, start_gateway

CLAIMS = ClaimRules("tenant", "role", {"submitter": "submitter", "boss": "admin", "v": "viewer"})
RULES = TokenRules(ISSUER, AUDIENCE, 30, CLAIMS)


@pytest.fixture
def idp(tmp_path: Path) -> Iterator[Provider]:
    with provider(tmp_path) as made:
        yield made


@pytest.fixture
def keys(idp: Provider, tmp_path: Path) -> KeySet:
    return KeySet(idp.url, tmp_path / "ca.crt")


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def refusal(token: str, keys: KeySet) -> str:
    with pytest.raises(BadToken) as caught:
        await verify_token(token, RULES, keys)
    return str(caught.value)


async def test_a_token_of_either_algorithm_says_who_asks(idp: Provider, keys: KeySet) -> None:
    for kid in ("r1", "e1"):
        token = idp.token(kid)
        assert is_token(token)
        found = await verify_token(token, RULES, keys)
        assert (found.key_id, found.role, found.tenant) == ("grace", "submitter", "ada")
        assert found.principal == "oidc:grace" and found.expires_s
    assert idp.asked == 1


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
async def test_a_claim_that_does_not_hold_closes_the_door(
    idp: Provider, keys: KeySet, claims: dict[str, object], reason: str
) -> None:
    assert reason in await refusal(idp.token(**claims), keys)


async def test_clocks_may_differ_by_the_leeway_alone(idp: Provider, keys: KeySet) -> None:
    now = int(time.time())
    await verify_token(idp.token(exp=now - 10), RULES, keys)
    await verify_token(idp.token(nbf=now + 10, iat=now + 10), RULES, keys)
    strict = TokenRules(ISSUER, AUDIENCE, 0, CLAIMS)
    with pytest.raises(BadToken, match="exp"):
        await verify_token(idp.token(exp=now - 10), strict, keys)


async def test_what_is_not_signed_is_refused(idp: Provider, keys: KeySet) -> None:
    body = idp.token().split(".")[1]
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        header = _part({"alg": algorithm, "kid": "r1", "typ": "JWT"})
        for signature in ("", idp.token().split(".")[2]):
            await refusal(f"{header}.{body}.{signature}", keys)
    assert idp.asked == 0


async def test_a_public_key_is_no_secret_of_hs256(idp: Provider, keys: KeySet) -> None:
    body = idp.token().split(".")[1]
    pem = (
        idp.keys["r1"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    for algorithm in ("HS256", "RS256", "ES256"):
        said = f"{_part({'alg': algorithm, 'kid': 'r1'})}.{body}"
        mac = hmac.digest(pem, said.encode(), "sha256")
        signature = base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
        await refusal(f"{said}.{signature}", keys)


@pytest.mark.parametrize(
    "algorithm", ["HS256", "HS512", "RS384", "RS512", "PS256", "ES384", "EdDSA"]
)
async def test_only_two_algorithms_are_taken(idp: Provider, keys: KeySet, algorithm: str) -> None:
    _, body, signature = idp.token().split(".")
    assert "alg" in await refusal(
        f"{_part({'alg': algorithm, 'kid': 'r1'})}.{body}.{signature}", keys
    )


async def test_an_algorithm_that_is_not_its_keys_is_refused(idp: Provider, keys: KeySet) -> None:
    token = jwt.encode({"sub": "x"}, idp.keys["r1"], "RS256", {"kid": "e1"})  # type: ignore[arg-type]
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
    assert idp.asked == 0


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
    assert idp.asked == 0


# ---- keys ---------------------------------------------------------------------------------


async def test_a_key_that_is_new_is_found_and_one_that_is_gone_is_not(
    idp: Provider, tmp_path: Path
) -> None:
    at = [0.0]
    keys = KeySet(idp.url, tmp_path / "ca.crt", lambda: at[0])
    await verify_token(idp.token("r1"), RULES, keys)
    old = idp.token("r1")
    idp.shown.clear()
    idp.add("r2", new_rsa())
    at[0] += RETRY_S
    assert (await verify_token(idp.token("r2"), RULES, keys)).key_id == "grace"
    assert "unknown key" in await refusal(old, keys)


async def test_unknown_keys_have_the_set_fetched_at_a_bounded_rate(
    idp: Provider, tmp_path: Path
) -> None:
    at = [0.0]
    keys = KeySet(idp.url, tmp_path / "ca.crt", lambda: at[0])
    idp.keys |= {f"u{n}": new_ec() for n in range(30)}
    tokens = [idp.token(f"u{n}") for n in range(30)]
    for _ in range(3):
        await asyncio.gather(*(refusal(token, keys) for token in tokens))
        at[0] += 1
    assert idp.asked == 1
    at[0] += RETRY_S
    await asyncio.gather(*(refusal(token, keys) for token in tokens))
    assert idp.asked == 2


async def test_known_keys_outlast_an_outage_for_a_day_and_are_refreshed_behind_it(
    idp: Provider, tmp_path: Path
) -> None:
    at = [0.0]
    keys = KeySet(idp.url, tmp_path / "ca.crt", lambda: at[0])
    idp.keys["new"] = new_ec()
    await verify_token(idp.token(), RULES, keys)
    idp.status = 500
    at[0] = REFRESH_S + 1
    await verify_token(idp.token(), RULES, keys)
    async with asyncio.timeout(30):
        while keys.fetches < 2:
            await asyncio.sleep(0.01)
    await verify_token(idp.token(), RULES, keys)
    with pytest.raises(KeysUnavailable):
        await verify_token(idp.token("new"), RULES, keys)
    at[0] = MAX_AGE_S + 1
    with pytest.raises(KeysUnavailable):
        await verify_token(idp.token(), RULES, keys)
    idp.status = 200
    at[0] += RETRY_S
    await verify_token(idp.token(), RULES, keys)


async def test_a_provider_that_cannot_prove_who_it_is_has_no_keys(
    idp: Provider, tmp_path: Path
) -> None:
    with pytest.raises(KeysUnavailable):
        await verify_token(idp.token(), RULES, KeySet(idp.url))
    with pytest.raises(KeysUnavailable):
        await verify_token(
            idp.token(), RULES, KeySet("https://127.0.0.1:9/keys", tmp_path / "ca.crt")
        )
    assert idp.asked == 0


async def test_keys_are_read_from_a_file_too(idp: Provider, tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": idp.shown}))
    for place in (str(path), f"file://{path}"):
        assert (await verify_token(idp.token(), RULES, KeySet(place))).tenant == "ada"


def test_only_keys_that_can_verify_our_algorithms_are_kept() -> None:
    good, weak = new_rsa(), rsa.generate_private_key(65537, 1024)
    shown: list[object] = [
        public(good, "good"),
        public(weak, "short"),
        public(new_ec(ec.SECP384R1()), "p384"),
        public(good, "enc", use="enc"),
        public(good, "rs512", alg="RS512"),
        public(good, ""),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "hmac", "alg": "HS256"},
        {"kty": "RSA", "kid": "broken", "n": "x"},
        {"kty": "RSA"},
        "no key",
    ]
    assert set(usable_keys(json.dumps({"keys": shown}).encode())) == {"good"}
    for raw in (b"", b"[]", b"{}", b'{"keys": 1}', b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match="JSON|key set"):
            usable_keys(raw)


# ---- claims -------------------------------------------------------------------------------


def test_claims_are_found_by_their_configured_names() -> None:
    rules = ClaimRules(
        "https://berth/tenant", "realm.roles", {"users": "viewer", "ops": "operator"}
    )
    told = {"sub": "s", "exp": 9, "https://berth/tenant": "ada", "realm": {"roles": ["x", "users"]}}
    assert bearer_of(told, rules) == Bearer("s", "viewer", "ada", 9)
    both = {**told, "realm": {"roles": ["users", "ops"]}}
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
def test_claims_that_say_nothing_clear_say_nothing(claims: dict[str, object]) -> None:
    told = {"sub": "s", "exp": 9, "tenant": "ada", "role": "submitter", **claims}
    with pytest.raises(BadClaims):
        bearer_of(told, CLAIMS)


def test_a_half_configured_provider_ends_the_start() -> None:
    given = {"BERTH_KAFKA": "k:1", "BERTH_DATA": "/d", "BERTH_OIDC_ISSUER": ISSUER}
    with pytest.raises(BadSettings, match="together"):
        read_settings(GatewaySettings, given)
    with pytest.raises(BadSettings, match="OIDC_KEYS"):
        read_settings(GatewaySettings, given | {"BERTH_OIDC_KEYS": "http://idp/keys"})
    with pytest.raises(BadSettings, match="OIDC_LEEWAY_S"):
        read_settings(GatewaySettings, given | {"BERTH_OIDC_LEEWAY_S": "61"})


# ---- the gateway --------------------------------------------------------------------------


async def test_the_api_takes_tokens_and_goes_on_with_keys_while_the_provider_is_away(
    stack: Stack, idp: Provider, tmp_path: Path
) -> None:
    roles = "submitter=submitter,boss=admin"
    running, url = start_gateway(
        tmp_path,
        stack.kafka,
        as_gateway(stack.dsn),
        BERTH_OIDC_ISSUER=ISSUER,
        BERTH_OIDC_AUDIENCE=AUDIENCE,
        BERTH_OIDC_KEYS=idp.url,
        BERTH_OIDC_ROLES=roles,
        BERTH_OIDC_CA=str(tmp_path / "ca.crt"),
    )
    there = Stack(stack.kafka, url, stack.dsn, tmp_path, stack.ledgers, stack.broker)
    try:
        await ready(url)
        idp.status = 503
        assert (await with_token(there, idp.token()))[0] == 503
        assert (await there.call("GET", "/v1/jobs"))[0] == 200
        idp.status = 200
        await asyncio.sleep(RETRY_S)
        assert (await with_token(there, idp.token()))[0] == 200
        await what_tokens_may(there, idp)
        idp.status = 503
        assert (await with_token(there, idp.token()))[0] == 200
    finally:
        running.stop()
    log = running.log.read_bytes()
    assert b"eyJ" not in log and b"Traceback" not in log


async def what_tokens_may(there: Stack, idp: Provider) -> None:
    status, said = await with_token(there, idp.token(), "POST", "/v1/jobs", {"name": "t"})
    assert status == 202
    command = await there.command(str(said["command_id"]))
    assert command is not None and command["tenant"] == "ada"
    body = {"name": "t", "tenant": "bob"}
    status, said = await with_token(there, idp.token(), "POST", "/v1/jobs", body)
    assert (status, said["reason"]) == (403, "tenant_mismatch")
    assert (await with_token(there, idp.token(tenant="ghost")))[0] == 403
    assert (await with_token(there, idp.token(role="root")))[0] == 403
    assert (await with_token(there, idp.token(aud="x")))[0] == 401
    assert (await with_token(there, idp.token(role="boss"), "DELETE", "/v1/keys/none"))[0] == 202
    assert (await with_token(there, idp.token(), "DELETE", "/v1/keys/none"))[0] == 403


async def with_token(
    there: Stack, token: str, method: str = "GET", path: str = "/v1/jobs", body: object = None
) -> tuple[int, dict[str, object]]:
    headers = {"Authorization": f"Bearer {token}"}
    status, said, _ = await there.call(method, path, body, key="", headers=headers)
    return status, said
