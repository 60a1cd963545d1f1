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
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

_unshare, _prctl, _mount = function("unshare"), function("prctl"), function("mount")
_setns = function("setns")


def unshare(flags: int) -> None:
    """Give the process, or its children, namespaces of their own. Raises OSError."""
    check(_unshare(flags))


def enter_namespace(descriptor: int, kind: int) -> None:
    """Move this process into a namespace of that kind. Raises OSError."""
    check(_setns(descriptor, kind))


def set_death_signal(number: int) -> None:
    """Let the kernel send a signal when the parent's thread dies; setuid clears it."""
    check(_prctl(PR_SET_PDEATHSIG, number, 0, 0, 0))


def become_subreaper() -> None:
    """Become the parent of descendants that lose theirs. Raises OSError."""
    check(_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def set_name(name: str) -> None:
    """Set the name of the process that `ps` shows, 15 bytes. Raises OSError."""
    check(_prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0))


def unshare_mounts() -> None:
    """Give this process and its children mounts of their own. Raises OSError.

    Mounts of the host still arrive here; those made here do not leave.
    """
    unshare(CLONE_NEWNS)
    check(_mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))


def mount_proc() -> None:
    """Show the processes of the present pid namespace in /proc. Raises OSError."""
    check(_mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None))


def mount_memory(target: str) -> None:
    """Mount an empty file system in memory. Raises OSError."""
    check(_mount(b"none", os.fsencode(target), b"tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, None))


def bind(source: str, target: str) -> None:
    """Show a folder, with what is mounted below it, in the place of another. Raises OSError."""
    check(_mount(os.fsencode(source), os.fsencode(target), None, MS_BIND | MS_REC, None))


def unshare_pids() -> None:
    """Make the next child the init of a pid namespace; without root also a user namespace.

    Raises OSError.
    """
    if os.geteuid() == 0:
        unshare(CLONE_NEWPID)
    else:
        unshare_users(CLONE_NEWPID)


def unshare_users(flags: int = 0) -> None:
    """Let this process, which is not root, make mounts; its user stays the same. Raises OSError."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | flags)
    for name, content in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)
