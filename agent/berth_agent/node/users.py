"""The UNIX user of a tenant's workers."""

from __future__ import annotations

import os
import pwd
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
    """Gives each tenant a user; a uid, once given, is never another tenant's."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._path = f"{config.state}/uids.json"

    def user_of(self, tenant: str) -> WorkerUser:
        """Return the user of a tenant. Raises StartRefused, OSError."""
        if os.geteuid() != 0:
            own = pwd.getpwuid(os.geteuid())
            return WorkerUser(None, own.pw_gid, (), own.pw_dir, own.pw_name)
        if tenant in self._config.users:
            return _named_user(self._config.users[tenant])
        if not self._config.uid_first:
            return WorkerUser(None, 0, (), "", "root")
        uid = self._uid_of(tenant)
        return WorkerUser(uid, uid, (uid,), "", "")

    def _uid_of(self, tenant: str) -> int:
        uids = dict(files.read_json(self._path) or {})
        if tenant not in uids:
            uid = self._config.uid_first + len(uids)
            if len(uids) >= self._config.uid_count:
                detail = f"{tenant}: all {self._config.uid_count} uids have tenants"
                raise StartRefused("no_uid", detail, False)
            uids[tenant] = uid
            files.write_json(self._path, uids)
        return int(uids[tenant])


def _named_user(name: str) -> WorkerUser:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise StartRefused("user_missing", f"{name}: no such user here", False) from None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return WorkerUser(entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, name)
