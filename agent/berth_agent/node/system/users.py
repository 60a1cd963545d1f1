"""The UNIX user of a tenant's workers."""

from __future__ import annotations

import logging
import os
import pwd
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from berth_agent import file_names
from berth_agent.linux import files
from berth_agent.node.config import Config
from berth_agent.step.checks import StartRefused

log = logging.getLogger(__name__)


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
        self._path = f"{config.state}/{file_names.UIDS}"
        self._lock = threading.Lock()
        self._warned = set[str]()

    def user_of(self, tenant: str, number: int | None, job_user: str = "") -> WorkerUser:
        """Return the user of a job by its tenant, the tenant's number and the user it belongs to.

        Raises StartRefused, OSError.
        """
        if os.geteuid() != 0:
            return _own_user()
        for name in (f"{tenant}/{job_user}", tenant):
            if name in self._config.users:
                return _named_user(self._config.users[name])
        if not self._config.uid_first:
            return WorkerUser(None, 0, (), "", "root")
        with self._lock:
            uid = self._uid_of(tenant, number)
        return WorkerUser(uid, uid, (uid,), "", "")

    def _uid_of(self, tenant: str, number: int | None) -> int:
        """Return the uid that the tenant has here: files of this node belong to it."""
        uids = dict(files.read_json(self._path) or {})
        if tenant not in uids:
            uids[tenant] = self._new_uid(tenant, number, uids)
            files.write_json(self._path, uids)
        uid = int(uids[tenant])
        if number is not None and uid != self._config.uid_first + number:
            self._warn(tenant, uid, self._config.uid_first + number)
        return uid

    def _new_uid(self, tenant: str, number: int | None, uids: Mapping[str, int]) -> int:
        """Return the uid of the tenant's number, the same on all nodes, unless another has it here.

        Earlier versions gave uids from `uid_first` on in the order in which tenants came to the
        node. A tenant whose uid went to another one by that, or whose number the executor does not
        know, gets a free uid of the upper half of the range. Raises StartRefused.
        """
        first, count, taken = self._config.uid_first, self._config.uid_count, set(uids.values())
        if number is not None and number >= count:
            raise _no_uid(f"{tenant}: its number is {number}; uid_count above it is allowed")
        if number is not None and first + number not in taken:
            return first + number
        spare = range(first + count // 2, first + count)
        free = next((uid for uid in spare if uid not in taken), None)
        if free is None:
            raise _no_uid(f"{tenant}: no uid is left; uid_count above {count} is allowed")
        return free

    def _warn(self, tenant: str, uid: int, elsewhere: int) -> None:
        if tenant not in self._warned:
            self._warned.add(tenant)
            text = "tenant %s: keeps uid %d of this node; on other nodes it is %d (docs: Uids)"
            log.warning(text, tenant, uid, elsewhere)


def _no_uid(detail: str) -> StartRefused:
    return StartRefused("no_uid", detail, False)


def _named_user(name: str) -> WorkerUser:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise StartRefused("user_missing", f"{name}: no such user here", False) from None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return WorkerUser(entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, name)


def _own_user() -> WorkerUser:
    """Return the user of the agent; one that the machine does not name has no home."""
    try:
        own = pwd.getpwuid(os.geteuid())
    except KeyError:
        return WorkerUser(None, os.getegid(), (), "", "")
    return WorkerUser(None, own.pw_gid, (), own.pw_dir, own.pw_name)
