"""Secrets of a launch: read where the executor runs, and sent to the node that runs the job."""

from __future__ import annotations

import re
from pathlib import Path

from shared.contracts.agents import Launch
from shared.contracts.failures import Failure

SECRET = "secret://"
SECRET_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")

UNUSABLE = Failure(
    reason="secret_unusable", detail="; UTF-8 without a NUL is allowed", permanent=True
)


def resolve_secrets(launch: Launch, folder: Path | None) -> Launch:
    """Return the launch with its secrets; with `failure` if one cannot be had.

    A secret is the file `<folder>/<tenant>/<name>`: a tenant can name only its own. One that is
    missing or unusable is so on every node; a file that cannot be read now may be readable later.
    Blocks.
    """
    env = dict(launch.env)
    for variable, value in env.items():
        if not value.startswith(SECRET):
            continue
        name = value.removeprefix(SECRET)
        secret = _read(folder, launch.tenant, name)
        if isinstance(secret, Failure):
            detail = f"env.{variable}: {name[:128]!r}{secret.detail}"
            failure = secret.model_copy(update={"detail": detail})
            return launch.model_copy(update={"env": {}, "failure": failure})
        env[variable] = secret
    return launch.model_copy(update={"env": env})


def needs_secrets(launch: Launch) -> bool:
    return any(value.startswith(SECRET) for value in launch.env.values())


def _read(folder: Path | None, tenant: str, name: str) -> str | Failure:
    if folder is None:
        return _missing("the executor has no folder of secrets: BERTH_SECRETS sets one")
    if not SECRET_NAME.fullmatch(name):
        return _missing("letters, digits and ._- are allowed")
    try:
        text = (folder / tenant / name).read_text(encoding="utf-8").rstrip("\n")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _missing(f"there is no file {tenant}/{name} in the folder of secrets")
    except UnicodeDecodeError:
        return UNUSABLE
    except OSError as error:
        return Failure(reason="secret_unreadable", detail=f": {error.strerror}")
    return UNUSABLE if "\0" in text else text


def _missing(detail: str) -> Failure:
    return Failure(reason="secret_missing", detail=f"; {detail}", permanent=True)
