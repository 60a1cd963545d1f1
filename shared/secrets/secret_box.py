"""Encrypts the value of a secret for one tenant, name and version.

Each value has a data key of its own, which a key of the installation encrypts. Both ciphertexts
authenticate tenant, name and version: one that is put under another tenant or name, or is brought
back as a later version, does not decrypt.
"""

from __future__ import annotations

import secrets

from shared.contracts.secrets import SealedValue, SecretStored, WrappedKey
from shared.secrets.secret_keys import KEY_BYTES, SecretKeys, seal, unseal


def seal_value(keys: SecretKeys, tenant: str, name: str, version: int, value: str) -> SealedValue:
    """Encrypt a value. Raises KeysUnusable."""
    context, data_key = _context(tenant, name, version), secrets.token_bytes(KEY_BYTES)
    return SealedValue(
        key=keys.wrap(data_key, context), data=seal(data_key, value.encode(), context)
    )


def open_value(keys: SecretKeys, secret: SecretStored) -> str:
    """Decrypt the value of a secret. Raises KeysUnusable, KeyMissing, Forged."""
    context = _context_of(secret)
    return unseal(keys.unwrap(secret.sealed.key, context), secret.sealed.data, context).decode()


def rewrap(keys: SecretKeys, secret: SecretStored) -> WrappedKey:
    """Encrypt the data key under the first key. Raises KeysUnusable, KeyMissing, Forged."""
    context = _context_of(secret)
    return keys.wrap(keys.unwrap(secret.sealed.key, context), context)


def _context_of(secret: SecretStored) -> bytes:
    return _context(secret.tenant, secret.name, secret.version)


def _context(tenant: str, name: str, version: int) -> bytes:
    """Return what is authenticated; no part can hold a NUL."""
    return f"berth secret 1\0{tenant}\0{name}\0{version}".encode()
