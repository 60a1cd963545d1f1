"""Keys of an installation that encrypt data keys of secrets: a file, outside broker and database.

A line is `ID KEY`, the key 32 bytes in base64. The first encrypts, all of them decrypt. The file is
read at each use, so that a new key needs no restart. A key service would have the methods of
`SecretKeys`, and keep its keys to itself.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shared.contracts.secrets import WrappedKey
from shared.secrets import private_file

FILE = "secret-keys"
"""Name of the file in the folder of an installation."""
KEY_BYTES, NONCE_BYTES = 32, 12


class KeysUnusable(ValueError):
    """The file of keys is missing or malformed; its content is not repeated."""


class KeyMissing(ValueError):
    """The file has no key of that id any more."""


class Forged(ValueError):
    """The ciphertext is not one of this tenant, name and version, or was changed."""


class SecretKeys:
    """Encrypts and decrypts data keys with the keys of a file; blocks on the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def wrap(self, data_key: bytes, context: bytes) -> WrappedKey:
        """Encrypt a data key under the first key. Raises KeysUnusable."""
        key_id, key = next(iter(self._read().items()))
        return WrappedKey(key_id=key_id, data=seal(key, data_key, context))

    def unwrap(self, wrapped: WrappedKey, context: bytes) -> bytes:
        """Decrypt a data key. Raises KeysUnusable, KeyMissing, Forged."""
        key = self._read().get(wrapped.key_id)
        if key is None:
            raise KeyMissing(f"key {wrapped.key_id}: not in the file of keys")
        return unseal(key, wrapped.data, context)

    def first(self) -> str:
        """Return the id of the key that encrypts. Raises KeysUnusable."""
        return next(iter(self._read()))

    def _read(self) -> dict[str, bytes]:
        return read_keys(self._path)


def read_keys(path: Path) -> dict[str, bytes]:
    """Return the keys by id, the one that encrypts first. Raises KeysUnusable."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except UnicodeDecodeError:
        raise KeysUnusable(f"{path}: not ASCII") from None
    except OSError as error:
        raise KeysUnusable(f"{path}: {error.strerror}") from None
    keys: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        key_id, _, text = line.strip().partition(" ")
        key = _decoded(text.strip())
        if key is None or key_id in keys:
            raise KeysUnusable(f"{path}: line {number}: `ID KEY` is allowed, each id once")
        keys[key_id] = key
    if not keys:
        raise KeysUnusable(f"{path}: no key; a line `ID KEY` is allowed")
    return keys


def make_keys(path: Path, mode: int = 0o600) -> bool:
    """Create the file with one key unless there is one; return whether it was created."""
    return private_file.create(path, _new_line(), mode)


def add_key(path: Path) -> str:
    """Put a new key before the others, so that it encrypts from now on; return its id.

    Raises KeysUnusable.
    """
    read_keys(path)
    line, mode = _new_line(), path.stat().st_mode & 0o777
    private_file.replace(path, line + path.read_text(encoding="ascii"), mode)
    return line.partition(" ")[0]


def seal(key: bytes, plain: bytes, context: bytes) -> str:
    """Return nonce and ciphertext as text; the context is authenticated and not kept."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return base64.urlsafe_b64encode(nonce + AESGCM(key).encrypt(nonce, plain, context)).decode()


def unseal(key: bytes, text: str, context: bytes) -> bytes:
    """Return what `seal` got. Raises Forged."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
        return AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], context)
    except (InvalidTag, ValueError):
        raise Forged("the ciphertext is not that of this tenant, name and version") from None


def _decoded(text: str) -> bytes | None:
    try:
        key = base64.b64decode(text, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def _new_line() -> str:
    key = base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    return f"k{secrets.token_hex(4)} {key}\n"
