"""Encrypts values of secrets; the gateway keeps none, and no route returns one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from services.gateway.responses.problem import ApiError
from shared.contracts.registry import AccessView
from shared.contracts.secrets import RewrapSecret, SecretStored, StoreSecret
from shared.http.rate import Rate
from shared.secrets.secret_box import open_value, rewrap, seal_value
from shared.secrets.secret_keys import Forged, KeyMissing, KeysUnusable, SecretKeys

NO_KEYS = "no file of keys: BERTH_SECRET_KEYS of the gateway and of executors of agents names one"
CHANGES = Rate(0.1, 300)
"""Changes of secrets by one tenant: each stays in the ledger of access, which all services read."""
MAX_REWRAPPED = 100
"""Most secrets of one request that get another key; the next request takes the rest."""


class Rewraps(NamedTuple):
    """Commands that bring secrets under the first key, and what they leave."""

    key_id: str
    commands: list[RewrapSecret]
    lost: list[str]
    """Secrets that no key of the file decrypts, as tenant/name."""
    left: int


class Sealing:
    """Makes the commands of secrets; raises ApiError where the keys cannot be used."""

    def __init__(self, path: Path | None) -> None:
        self._keys = None if path is None else SecretKeys(path)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock_of(self, tenant: str) -> asyncio.Lock:
        """Return the lock of a tenant: each of its versions follows the one before."""
        return self._locks.setdefault(tenant, asyncio.Lock())

    async def store(
        self, view: AccessView, tenant: str, name: str, value: str, set_by: str
    ) -> StoreSecret:
        """Return the command that stores the value.

        The value that the secret has already gives the stored ciphertext, which changes nothing.
        """
        existing, version = view.secrets.get(tenant, name), view.secrets.next_version(tenant)
        return await asyncio.to_thread(
            self._store, self._usable(), existing, tenant, name, version, value, set_by
        )

    async def rewraps(self, view: AccessView) -> Rewraps:
        """Return the commands that bring secrets of other keys under the first one."""
        return await asyncio.to_thread(self._rewraps, self._usable(), list(view.secrets))

    def _usable(self) -> SecretKeys:
        if self._keys is None:
            raise ApiError(503, "no_secret_keys", NO_KEYS)
        return self._keys

    def _store(
        self,
        keys: SecretKeys,
        existing: SecretStored | None,
        tenant: str,
        name: str,
        version: int,
        value: str,
        set_by: str,
    ) -> StoreSecret:
        try:
            if existing is not None and _holds(keys, existing, value):
                version, sealed = existing.version, existing.sealed
            else:
                sealed = seal_value(keys, tenant, name, version, value)
        except KeysUnusable as error:
            raise _unusable(error) from None
        return StoreSecret(tenant=tenant, name=name, version=version, sealed=sealed, set_by=set_by)

    def _rewraps(self, keys: SecretKeys, secrets: list[SecretStored]) -> Rewraps:
        commands, lost = list[RewrapSecret](), list[str]()
        try:
            first = keys.first()
            others = [secret for secret in secrets if secret.sealed.key.key_id != first]
            for secret in others:
                if len(commands) == MAX_REWRAPPED:
                    break
                try:
                    commands.append(_rewrap(keys, secret))
                except (KeyMissing, Forged):
                    lost.append(f"{secret.tenant}/{secret.name}")
        except KeysUnusable as error:
            raise _unusable(error) from None
        return Rewraps(first, commands, lost, len(others) - len(commands) - len(lost))


def _holds(keys: SecretKeys, secret: SecretStored, value: str) -> bool:
    """Return whether the secret has this value; one that cannot be decrypted any more is
    replaced.
    """
    try:
        return open_value(keys, secret) == value
    except (KeyMissing, Forged):
        return False


def _rewrap(keys: SecretKeys, secret: SecretStored) -> RewrapSecret:
    key = rewrap(keys, secret)
    return RewrapSecret(tenant=secret.tenant, name=secret.name, version=secret.version, key=key)


def _unusable(error: KeysUnusable) -> ApiError:
    return ApiError(503, "secret_keys_unusable", str(error))
