"""Keys of the identity provider are cached, refreshed at a bounded rate, and outlast outages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from shared.oidc.key_set import MAX_AGE_S, REFRESH_S, RETRY_S, KeySet, KeysUnavailable, usable_keys
from shared.oidc.tokens import verify_token
from tests.patience import PATIENCE_S
from tests.shared.oidc.identity import Provider, new_ec, new_rsa, public
from tests.shared.oidc.provider import RULES, refusal


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
    assert idp.requests == 1
    at[0] += RETRY_S
    await asyncio.gather(*(refusal(token, keys) for token in tokens))
    assert idp.requests == 2


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
    async with asyncio.timeout(PATIENCE_S):
        while idp.requests < 2:
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
    assert idp.requests == 0


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
