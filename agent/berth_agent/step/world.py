"""The view that a worker has of its machine: its job's folders in place of those of all users."""

from __future__ import annotations

import errno
import os

from berth_agent.linux import syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth_agent.step.spec import Spec

UNIFIED = "/sys/fs/cgroup/unified"
VARIABLES = "env"
"""File of the engine's store with the variables of its container, a line each."""
CONTAINER = "worker"
"""Name of the container in its store, which holds no other."""
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def enter(spec: Spec) -> None:
    """Give the init of a worker, and what it starts, the worker's view. Raises OSError.

    The user of the process changes for a while, which clears its death signal.
    """
    _replace(spec)
    if spec.image:
        _hide_unified()
        _make_store(spec)
    if spec.pid_namespace:
        try:
            if not spec.mounts:
                syscalls.unshare_mounts()
            syscalls.mount_proc()
        except OSError:
            # Its programs see the pids of the host.
            return


def _hide_unified() -> None:
    """Hide version 2 of control groups where version 1 is beside it: crun refuses the two.

    A container stays in the groups of its worker, so that it needs neither. Raises OSError.
    """
    if os.path.ismount(UNIFIED):
        syscalls.mount_memory(UNIFIED)


def _make_store(spec: Spec) -> None:
    """Put the engine's store in memory but for its layers, and the variables into it.

    The engine copies the variables, and with them values of secrets, to several files of its
    store. The mount goes with the worker. Raises OSError.
    """
    disk = os.open(spec.store, FOLDER)
    syscalls.mount_memory(spec.store)
    os.chmod(spec.store, 0o700)
    os.makedirs(spec.layers, mode=0o700)
    _bind(disk, os.open(spec.layers, FOLDER))
    lines = "".join(f"{name}={value}\n" for name, value in spec.variables.items())
    with open(f"{spec.store}/{VARIABLES}", "w", encoding="utf-8") as file:
        file.write(lines)


def is_inside(pid: int) -> bool:
    """Return whether a process is in a container, with a root of its own, and no part of the
    engine.
    """
    try:
        other, own = os.stat(f"/proc/{pid}/root"), os.stat("/proc/self/root")
    except OSError:
        return False
    return (other.st_dev, other.st_ino) != (own.st_dev, own.st_ino)


def look(spec: Spec) -> None:
    """Give a process outside of the worker its view of folders. Raises OSError."""
    if spec.mounts and os.geteuid() != 0:
        syscalls.unshare_users()
    _replace(spec)


def replaced(spec: Spec, path: str) -> str:
    """Return the folder of the job's own below which the path is, empty if there is none."""
    return next((target for _, target in spec.mounts if path.startswith(f"{target}/")), "")


def _replace(spec: Spec) -> None:
    """Show the job's folders, and in them those that it needs of what they hide."""
    if not spec.mounts:
        return
    syscalls.unshare_mounts()
    kept = list(_open_kept(spec))
    # A folder of the job may itself lie below one that is replaced.
    sources = [_open_own(spec, *mount) for mount in spec.mounts]
    for source, (_, target) in zip(sources, spec.mounts, strict=True):
        _bind(source, os.open(target, FOLDER))
    for path, source in kept:
        _bind(source, _make_folder(replaced(spec, path), path))


def _open_own(spec: Spec, source: str, target: str) -> int:
    """Open a folder that the agent has made, and no link or folder that has taken its place.

    The store of an engine is the agent's, the others belong to the worker's user. Raises OSError.
    """
    descriptor = os.open(source, FOLDER | os.O_NOFOLLOW)
    uid = os.geteuid() if spec.owner is None or target == spec.store else spec.owner
    if (present := os.fstat(descriptor).st_uid) != uid:
        raise PermissionError(errno.EPERM, f"it belongs to uid {present}, not {uid}", source)
    return descriptor


def _bind(source: int, target: int) -> None:
    """Show a folder in the place of another, and close both descriptors."""
    syscalls.bind(f"/proc/self/fd/{source}", f"/proc/self/fd/{target}")
    os.close(source)
    os.close(target)


def _open_kept(spec: Spec) -> Iterator[tuple[str, int]]:
    """Open the folders as the worker's user, who could not reach more by them than without.

    One that it may not enter is left out; the check of the working directory says so.
    """
    for path in spec.kept:
        if not replaced(spec, path):
            continue
        try:
            _become(spec.owner, spec.gid, spec.groups)
            yield path, os.open(path, FOLDER)
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            continue
        finally:
            _become(None if spec.owner is None else 0, 0, [0])


def _become(uid: int | None, gid: int, groups: list[int]) -> None:
    """Change the effective user, root's being able to change it again."""
    if uid is None:
        return
    if uid == 0:
        os.seteuid(uid)
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)


def _make_folder(above: str, path: str) -> int:
    """Return a descriptor of the folder, made below one that the job can write; links are refused.

    Another worker of the job could lead this process, which may be root, anywhere by a link.
    """
    descriptor = os.open(above, FOLDER)
    for part in path[len(above) + 1 :].split("/"):
        if part in ("", "."):
            continue
        _make_part(part, descriptor)
        below = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    return descriptor


def _make_part(name: str, above: int) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=above)
    except FileExistsError:
        return
