"""The identity provider's public keys: fetched over HTTPS or from a file, kept, and rotated."""

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
AGAIN_S = 10.0
"""At most one fetch per this, however many unknown keys are named."""
KEPT_S = 24 * 3600.0
"""So long keys are good while the provider does not answer."""
FETCH_S = 3.0
LONGEST_BYTES = 256 * 1024
SHORTEST_RSA_BITS = 2048
ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}

log = logging.getLogger(__name__)
Clock = Callable[[], float]


class KeysUnavailable(Exception):
    """No fresh enough set of keys is at hand: the token may be good."""


class KeySet:
    """By key id. One that is unknown has the set fetched anew, at most once per `AGAIN_S`."""

    def __init__(self, place: str, ca: Path | None = None, clock: Clock = monotonic) -> None:
        self._place = place
        self._ca = ca
        self._clock = clock
        self._keys: dict[str, PyJWK] = {}
        self._fetched_s: float | None = None
        self._tried_s: float | None = None
        self._lock = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None
        self.fetches = 0

    async def key(self, kid: str) -> PyJWK | None:
        """None for a key that the provider does not have; raises CannotJudge where that is not
        known."""
        found = self._keys.get(kid) if self._age_s() < KEPT_S else None
        if found is not None:
            if self._age_s() > REFRESH_S and self._may_try():
                self._refreshing = asyncio.ensure_future(self._refresh())
            return found
        await self._refresh()
        if self._failing() or self._age_s() >= KEPT_S:
            raise KeysUnavailable("the identity provider's keys cannot be read")
        return self._keys.get(kid)

    def _age_s(self) -> float:
        return float("inf") if self._fetched_s is None else self._clock() - self._fetched_s

    def _failing(self) -> bool:
        """The last attempt was in vain."""
        return self._fetched_s is None or self._tried_s != self._fetched_s

    def _may_try(self) -> bool:
        return self._tried_s is None or self._clock() - self._tried_s >= AGAIN_S

    async def _refresh(self) -> None:
        """Who waits for a fetch that is under way shares it."""
        async with self._lock:
            if not self._may_try():
                return
            self._tried_s = self._clock()
            self.fetches += 1
            try:
                self._keys = usable_keys(await self._read())
            except (OSError, aiohttp.ClientError, TimeoutError, ValueError) as error:
                log.warning(
                    "no keys of the identity provider", extra={"reason": type(error).__name__}
                )
            else:
                self._fetched_s = self._tried_s

    async def _read(self) -> bytes:
        if urlsplit(self._place).scheme != "https":
            return Path(self._place.removeprefix("file://")).read_bytes()
        context = ssl.create_default_context(cafile=self._ca)
        timeout = aiohttp.ClientTimeout(total=FETCH_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(self._place, ssl=context, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            raw = await answer.content.read(LONGEST_BYTES + 1)
        if len(raw) > LONGEST_BYTES:
            raise ValueError("too long")
        return raw


def usable_keys(raw: bytes) -> dict[str, PyJWK]:
    """Keys that verify RS256 or ES256 and have an id; others are passed over, symmetric ones first
    of all. Raises ValueError for what is no key set."""
    try:
        told = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("not JSON") from error
    keys = told.get("keys") if isinstance(told, Mapping) else None
    if not isinstance(keys, list):
        raise ValueError("no key set")
    found = ((each.get("kid"), _key(each)) for each in keys if isinstance(each, dict))
    return {kid: key for kid, key in found if isinstance(kid, str) and kid and key is not None}


def _key(told: dict[str, object]) -> PyJWK | None:
    algorithm = ALGORITHMS.get(str(told.get("kty")))
    if algorithm is None or told.get("alg", algorithm) != algorithm:
        return None
    if told.get("use", "sig") != "sig" or "d" in told:
        return None
    try:
        made = PyJWK(told, algorithm=algorithm)
    except (PyJWTError, ValueError, TypeError):
        return None
    match made.key:
        case RSAPublicKey() as rsa:
            return made if rsa.key_size >= SHORTEST_RSA_BITS else None
        case EllipticCurvePublicKey() as curve:
            return made if isinstance(curve.curve, SECP256R1) else None
        case _:
            return None
