"""The UNIX users of Slurm's jobs: no job of a tenant runs as root."""

from __future__ import annotations

import pwd
from collections.abc import Iterable
from contextlib import suppress

from shared.contracts.failures import Failure

ROOT = 0


def is_root(user: str) -> bool:
    """Return whether a name is one of root's; False for a name that this machine lacks."""
    try:
        return pwd.getpwnam(user).pw_uid == ROOT
    except KeyError:
        return False


def user_refusal(tenant: str, user: str, executor_uid: int) -> Failure | None:
    """Return why no job of a tenant may run as that user; None if it may.

    An empty user is that of the executor.
    """
    if user and not is_root(user):
        return None
    if not user and executor_uid != ROOT:
        return None
    detail = f"tenant {tenant}: no UNIX user; jobs do not run as root"
    return Failure(reason="user_missing", detail=detail, permanent=True)


def user_name(uid: int) -> str:
    """Return the name of a user, as Slurm shows it; the number where this machine has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def uids_of(users: Iterable[str]) -> frozenset[int]:
    """Return the numbers of users, without those that this machine lacks."""
    uids = set()
    for user in users:
        with suppress(KeyError):
            uids.add(pwd.getpwnam(user).pw_uid)
    return frozenset(uids)
