"""The UNIX user of a tenant's workers."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from berth_agent.linux import files
from berth_agent.node.config import Config
from berth_agent.step.checks import StartRefused


@dataclass(frozen=True, slots=True)
class WorkerUser:
    """The user that a worker runs as; `uid` is None if it is the agent's own."""

    uid: int | None
    gid: int
    groups: tuple[int, ...]
    home: str
    """Empty: the worker's private directory."""
    name: str

    @property
    def owner(self) -> tuple[int, int]:
        return (os.geteuid(), os.getegid()) if self.uid is None else (self.uid, self.gid)


class Users:
    """Gives each tenant a user; a uid, once given, is never another tenant's.

    Used by threads, one for each launch.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._path = f"{config.state}/uids.json"
        self._lock = threading.Lock()

    def user_of(self, tenant: str) -> WorkerUser:
        """Return the user of a tenant. Raises StartRefused, OSError."""
        if os.geteuid() != 0:
            own = pwd.getpwuid(os.geteuid())
            return WorkerUser(None, own.pw_gid, (), own.pw_dir, own.pw_name)
        if tenant in self._config.users:
            return _named_user(self._config.users[tenant])
        if not self._config.uid_first:
            return WorkerUser(None, 0, (), "", "root")
        with self._lock:
            uid = self._uid_of(tenant)
        return WorkerUser(uid, uid, (uid,), "", "")

    def _uid_of(self, tenant: str) -> int:
        uids = dict(files.read_json(self._path) or {})
        if tenant not in uids:
            uids[tenant] = self._new_uid(tenant, uids)
            files.write_json(self._path, uids)
        return int(uids[tenant])

    def _new_uid(self, tenant: str, uids: Mapping[str, int]) -> int:
        """Return the uid after the highest one of the range. Raises StartRefused."""
        first, count = self._config.uid_first, self._config.uid_count
        taken = [uid for uid in uids.values() if first <= uid < first + count]
        uid = max(taken, default=first - 1) + 1
        if uid >= first + count:
            detail = (
                f"{tenant}: the last of {count} uids has a tenant; a larger uid_count is allowed"
            )
            raise StartRefused("no_uid", detail, False)
        return uid


def _named_user(name: str) -> WorkerUser:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise StartRefused("user_missing", f"{name}: no such user here", False) from None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return WorkerUser(entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, name)
