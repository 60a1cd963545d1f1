"""Secrets of a launch: decrypted where the executor runs, for the node that runs the job alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Set
from pathlib import Path
from typing import TypeAlias

from shared.bus.hosting.access import AccessFollower
from shared.contracts.agents import Launch
from shared.contracts.failures import Failure
from shared.contracts.secrets import NAME_RULE, SECRET_NAME, SecretStored, secrets_named
from shared.secrets.secret_box import open_value
from shared.secrets.secret_keys import Forged, KeyMissing, KeysUnusable, SecretKeys

log = logging.getLogger(__name__)

NOT_READ = "; the ledger of access is not read to its end"

Value: TypeAlias = "str | Failure"


class Secrets:
    """Gives launches the values of their secrets, or the reason why they cannot run.

    `folder` has those of an earlier release, as files `<tenant>/<name>`: they count until the
    ledger has a secret of the name.
    """

    def __init__(self, access: AccessFollower, keys: Path | None, folder: Path | None) -> None:
        self._access = access
        self._keys = None if keys is None else SecretKeys(keys)
        self._folder = folder

    async def resolve(self, launch: Launch) -> Launch:
        """Return the launch with its values beside the variables that name them."""
        named = secrets_named(launch.env)
        if not named:
            return launch
        stored = await self._stored(launch.tenant, set(named.values()))
        values = await asyncio.to_thread(self._open_all, launch.tenant, stored)
        for variable, name in named.items():
            failure = values[name]
            if isinstance(failure, Failure):
                detail = f"env.{variable}: {name[:128]!r}{failure.detail}"[:1024]
                failure = failure.model_copy(update={"detail": detail})
                return launch.model_copy(update={"env": {}, "failure": failure})
        return launch.model_copy(update={"secrets": {v: values[name] for v, name in named.items()}})

    async def _stored(
        self, tenant: str, names: Set[str]
    ) -> dict[str, SecretStored | Failure | None]:
        """Return the secrets as the ledger has them now, None for those that it does not.

        They may have been set a moment ago: all names together wait for the ledger once, as other
        orders of the node wait for this one.
        """
        secrets = self._access.view.secrets
        usable = {name for name in names if SECRET_NAME.fullmatch(name)}
        is_known = all(secrets.get(tenant, name) is not None for name in usable)
        is_read = is_known or await self._access.catch_up()
        absent = None if is_read or self._folder else _unreadable(NOT_READ)
        stored = {name: secrets.get(tenant, name) or absent for name in usable}
        return stored | {name: _missing(NAME_RULE) for name in names - usable}

    def _open_all(
        self, tenant: str, stored: Mapping[str, SecretStored | Failure | None]
    ) -> dict[str, Value]:
        return {name: self._open(tenant, name, secret) for name, secret in stored.items()}

    def _open(self, tenant: str, name: str, stored: SecretStored | Failure | None) -> Value:
        match stored:
            case Failure():
                return stored
            case None if self._folder is not None:
                return _read_file(self._folder, tenant, name)
            case None:
                return _missing(f"tenant {tenant} has no such secret, or not any more")
            case _ if self._keys is None:
                return _unreadable("; BERTH_SECRET_KEYS of the executor names no file of keys")
        try:
            return open_value(self._keys, stored)
        except KeysUnusable as error:
            # Its path is of no concern to the tenant.
            log.warning("secrets cannot be decrypted", extra={"reason": str(error)})
            return _unreadable("; the executor cannot read its file of keys")
        except KeyMissing as error:
            return _unreadable(f"; {error}")
        except Forged as error:
            return Failure(reason="secret_forged", detail=f"; {error}", permanent=True)


def without_separation(launch: Launch) -> Launch:
    """Return the launch for an agent of an earlier release: the values are its variables."""
    return launch.model_copy(update={"env": {**launch.env, **launch.secrets}, "secrets": {}})


def _read_file(folder: Path, tenant: str, name: str) -> Value:
    try:
        text = (folder / tenant / name).read_text(encoding="utf-8").rstrip("\n")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _missing(f"tenant {tenant} has no such secret, and no file {tenant}/{name}")
    except UnicodeDecodeError:
        return _unusable()
    except OSError as error:
        return _unreadable(f": {error.strerror}")
    return _unusable() if "\0" in text else text


def _missing(detail: str) -> Failure:
    return Failure(reason="secret_missing", detail=f"; {detail}", permanent=True)


def _unusable() -> Failure:
    detail = "; UTF-8 without a NUL is allowed"
    return Failure(reason="secret_unusable", detail=detail, permanent=True)


def _unreadable(detail: str) -> Failure:
    return Failure(reason="secret_unreadable", detail=detail)
