"""The machine: its identity, what it has, and what its kernel permits."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from berth_agent.core.incarnation import Machine
from berth_agent.node.config import Config

REPLACED = ("/tmp", "/var/tmp", "/dev/shm")
"""Folders that all users may write: a job sees its own in their place."""

PROBE_S = 20.0
COUNTS_PIDS = (5, 14)
"""The kernel from which limits of processes count by user namespace."""
PROBE_PIDS = "syscalls.unshare_pids()"
GPU_FOLDER = Path("/proc/driver/nvidia/gpus")
BOARD = Path("/sys/class/dmi/id/product_uuid")


def read_machine() -> Machine:
    """Return the identity of the running machine. Raises OSError."""
    present, *former = hardware_hashes()
    pids, network = (os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net"))
    return Machine(read_boot_id(), pids, present, tuple(former), network)


def read_boot_id() -> str:
    """Return the id of the machine's boot. Raises OSError."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def hardware() -> str:
    """Return a hash of the identity of the board, else of the GPUs; empty if there is neither.

    A GPU that is replaced, or whose driver is not loaded yet, does not make another machine. A
    cloned disk has another hash, which is why the machine's id in /etc does not count.
    """
    return hardware_hashes()[0]


def hardware_hashes() -> list[str]:
    """Return the present hash, then those by which a node of this machine may have joined."""
    gpus, board = gpu_uuids(), _board()
    present = _hash(board or gpus)
    former = dict.fromkeys(_hash(parts) for parts in ([*gpus, *board], gpus))
    return [present, *(known for known in former if known not in (present, ""))]


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts else ""


def gpu_uuids() -> list[str]:
    """Return the UUIDs of the GPUs that answer, in the order of their PCI addresses."""
    uuids = []
    for folder in sorted(GPU_FOLDER.glob("*")):
        for line in _information(folder):
            name, _, value = line.partition(":")
            if name.strip() == "GPU UUID":
                uuids.append(value.strip())
    return uuids


def _information(gpu: Path) -> list[str]:
    """Return what the driver says of a GPU; nothing of one that has failed."""
    try:
        return (gpu / "information").read_text(errors="replace").splitlines()
    except OSError:
        return []


def _board() -> list[str]:
    """Return the board's UUID, which only root may read; some boards have a constant one."""
    try:
        uuid = BOARD.read_text().strip().lower()
    except OSError:
        return []
    return [uuid] if len(set(uuid) - {"-"}) > 2 else []


def gpu_count(config: Config) -> int:
    return config.gpus if config.gpus >= 0 else len(gpu_uuids())


def cpu_count(config: Config) -> float:
    return config.cpus or float(len(os.sched_getaffinity(0)))


def memory_gib(config: Config) -> float:
    """Return the memory for workers, GiB, rounded down to a mebibyte."""
    if config.mem_gib:
        return config.mem_gib
    total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return total_bytes // 2**20 / 1024


class Kernel(NamedTuple):
    """Means that the kernel permits this agent to use for its workers."""

    pids: bool
    """Pid namespaces."""
    mounts: bool
    """Folders of a job in place of those of the machine."""
    counts_pids: bool = False
    """A limit of processes of a user counts those of a worker's own user namespace alone."""


def probe_kernel(config: Config) -> Kernel:
    """Try what workers are to have, in processes of their own."""
    pids = config.pid_namespaces and _can(PROBE_PIDS, "pass")
    view = "syscalls.unshare_mounts(); [syscalls.bind(path, path) for path in sys.argv[1:]]"
    mounts = config.private_tmp and _can(PROBE_PIDS if pids else "", view, *REPLACED)
    # Root's workers have no user namespace of their own.
    counts_pids = pids and os.geteuid() != 0 and release() >= COUNTS_PIDS
    return Kernel(pids, mounts, counts_pids)


def release() -> tuple[int, int]:
    """Return the version of the running kernel."""
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(takewhile(str.isdigit, minor)) or 0)


def _can(before: str, within: str, *arguments: str) -> bool:
    """Return whether a child can run some code after other code has run."""
    code = (
        f"from berth_agent.linux import syscalls; import os\n{before}\n"
        "pid = os.fork()\n"
        f"if pid == 0:\n    {within}\n    os._exit(0)\n"
        "os._exit(os.waitpid(pid, 0)[1] and 1)\n"
    )
    try:
        done = subprocess.run(
            isolated_command(code, *arguments), capture_output=True, timeout=PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def isolated_command(code: str, *arguments: str) -> list[str]:
    """Return the command of a Python process that imports nothing but this package.

    Neither the environment, nor the present folder, nor installed packages have a say in it.
    """
    importing = f"import sys; sys.path.insert(0, {package_path()!r})\n{code}"
    return [sys.executable, "-I", "-S", "-c", importing, *arguments]


def package_path() -> str:
    """Return the folder or archive that this package was loaded from."""
    return str(Path(__file__).parents[3])


def address_towards(host: str, port: int) -> str:
    """Return this machine's address as the host sees it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, port))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
