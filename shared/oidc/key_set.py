"""The identity provider's public keys: fetched over HTTPS or from a file, cached and refreshed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import aiohttp
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

REFRESH_S = 300.0
RETRY_S = 10.0
"""At least this long between two fetches, however many unknown keys are requested."""
MAX_AGE_S = 24 * 3600.0
"""Maximum age of keys while the provider does not answer."""
FETCH_TIMEOUT_S = 3.0
MAX_BYTES = 256 * 1024
MIN_RSA_BITS = 2048
ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}

log = logging.getLogger(__name__)
Clock = Callable[[], float]


class KeysUnavailable(Exception):
    """No recent set of keys is available: the token can be neither accepted nor rejected."""


class KeySet:
    """Keys by key id. An unknown id refreshes the set, at most once per `RETRY_S`."""

    def __init__(self, address: str, ca: Path | None = None, clock: Clock = monotonic) -> None:
        self._address = address
        self._ca = ca
        self._clock = clock
        self._keys: dict[str, PyJWK] = {}
        self._fetched_s: float | None = None
        self._tried_s: float | None = None
        self._lock = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None

    async def key(self, kid: str) -> PyJWK | None:
        """Return the key, None if the provider has no such key; raises KeysUnavailable if that
        cannot be determined."""
        key = self._keys.get(kid) if self._age_s() < MAX_AGE_S else None
        if key is not None:
            if self._age_s() > REFRESH_S and self._is_retry_due():
                self._refreshing = asyncio.ensure_future(self._refresh())
            return key
        await self._refresh()
        if self._has_failed() or self._age_s() >= MAX_AGE_S:
            raise KeysUnavailable("the identity provider's keys are unavailable")
        return self._keys.get(kid)

    def _age_s(self) -> float:
        return float("inf") if self._fetched_s is None else self._clock() - self._fetched_s

    def _has_failed(self) -> bool:
        """True if the last attempt to fetch the keys failed."""
        return self._fetched_s is None or self._tried_s != self._fetched_s

    def _is_retry_due(self) -> bool:
        return self._tried_s is None or self._clock() - self._tried_s >= RETRY_S

    async def _refresh(self) -> None:
        """Fetch the keys; concurrent callers share one fetch."""
        async with self._lock:
            if not self._is_retry_due():
                return
            self._tried_s = self._clock()
            try:
                self._keys = usable_keys(await self._read())
            except (OSError, aiohttp.ClientError, TimeoutError, ValueError) as error:
                log.warning("fetching OIDC keys failed", extra={"reason": type(error).__name__})
            else:
                self._fetched_s = self._tried_s

    async def _read(self) -> bytes:
        if urlsplit(self._address).scheme != "https":
            return Path(self._address.removeprefix("file://")).read_bytes()
        context = ssl.create_default_context(cafile=self._ca)
        timeout = aiohttp.ClientTimeout(total=FETCH_TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(self._address, ssl=context, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            raw = await response.content.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        return raw


def usable_keys(raw: bytes) -> dict[str, PyJWK]:
    """Return the keys with an id that verify RS256 or ES256; others, such as symmetric ones, are
    skipped. Raises ValueError for anything that is no key set."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("not JSON") from error
    keys = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(keys, list):
        raise ValueError("not a key set")
    pairs = ((jwk.get("kid"), _key(jwk)) for jwk in keys if isinstance(jwk, dict))
    return {kid: key for kid, key in pairs if isinstance(kid, str) and kid and key is not None}


def _key(jwk: dict[str, object]) -> PyJWK | None:
    algorithm = ALGORITHMS.get(str(jwk.get("kty")))
    if algorithm is None or jwk.get("alg", algorithm) != algorithm:
        return None
    if jwk.get("use", "sig") != "sig" or "d" in jwk:
        return None
    try:
        key = PyJWK(jwk, algorithm=algorithm)
    except (PyJWTError, ValueError, TypeError):
        return None
    match key.key:
        case RSAPublicKey() as rsa:
            return key if rsa.key_size >= MIN_RSA_BITS else None
        case EllipticCurvePublicKey() as curve:
            return key if isinstance(curve.curve, SECP256R1) else None
        case _:
            return None
