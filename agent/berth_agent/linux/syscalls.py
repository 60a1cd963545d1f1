"""System calls that Python 3.11 does not have: namespaces, mounts and prctl."""

from __future__ import annotations

import os

from berth_agent.linux.libc import check, function

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REC = 16384
MS_SLAVE = 1 << 19
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

_unshare, _prctl, _mount = function("unshare"), function("prctl"), function("mount")


def unshare(flags: int) -> None:
    """Give the process, or its children, namespaces of their own. Raises OSError."""
    check(_unshare(flags))


def set_death_signal(number: int) -> None:
    """Let the kernel send a signal when the parent's thread dies; setuid clears it."""
    check(_prctl(PR_SET_PDEATHSIG, number, 0, 0, 0))


def become_subreaper() -> None:
    """Become the parent of descendants that lose theirs. Raises OSError."""
    check(_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def set_name(name: str) -> None:
    """Set the name of the process that `ps` shows, 15 bytes. Raises OSError."""
    check(_prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0))


def mount_proc() -> None:
    """Show the processes of the present pid namespace in /proc, for this process and its children.

    Mounts of the host still arrive here; those made here do not leave. Raises OSError.
    """
    unshare(CLONE_NEWNS)
    check(_mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))
    check(_mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None))


def unshare_pids() -> None:
    """Make the next child the init of a pid namespace; without root also a user namespace.

    Raises OSError.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        unshare(CLONE_NEWPID)
        return
    unshare(CLONE_NEWUSER | CLONE_NEWPID)
    for name, content in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)
